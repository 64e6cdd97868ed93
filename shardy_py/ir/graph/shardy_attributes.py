"""Attributes of Shardy: which ops need them, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    CONSTRAINT,
    MANUAL_COMPUTATION,
    MESH,
    NAMED_COMPUTATION,
    PROPAGATION_BARRIER,
    REDUCE_SCATTER,
    REPLICATED_TO_UNREDUCED,
    RESHARD,
    SHARDED_TO_UNREDUCED,
    SHARDING_GROUP,
)
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE
from shardy_py.ir.graph.shardings import SHARDING
from shardy_py.ir.interfaces.directions import DIRECTION, DIRECTIONS, direction_code
from shardy_py.sharding.collectives import AllToAllParamList, AxisRefList, ListOfAxisRefLists
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import ManualAxes, TensorSharding, TensorShardingPerValue

Expected = Mapping[str, tuple[type, ...]]

_EVERYWHERE: Expected = {SHARDING: (TensorSharding, TensorShardingPerValue), RULE_ATTRIBUTE: (OpShardingRule,)}
_PER_VALUE: Expected = {"in_shardings": (TensorShardingPerValue,), "out_shardings": (TensorShardingPerValue,)}
_OUT: Expected = {"out_sharding": (TensorSharding,)}
_OF_OP: Mapping[str, Expected] = {
    MESH: {"mesh": (Mesh,), "sym_name": (str,)},
    CONSTRAINT: {"sharding": (TensorSharding,)},
    RESHARD: {"sharding": (TensorSharding,)},
    SHARDING_GROUP: {"group_id": (int,)},
    NAMED_COMPUTATION: {"name": (str,)},
    MANUAL_COMPUTATION: {**_PER_VALUE, "manual_axes": (ManualAxes,)},
    ALL_GATHER: {"gathering_axes": (ListOfAxisRefLists,), **_OUT},
    ALL_SLICE: {"slicing_axes": (ListOfAxisRefLists,), **_OUT},
    REDUCE_SCATTER: {"reduce_scatter_axes": (ListOfAxisRefLists,), **_OUT},
    ALL_REDUCE: {"reduction_axes": (AxisRefList,), **_OUT},
    ALL_TO_ALL: {"params": (AllToAllParamList,), **_OUT},
    COLLECTIVE_PERMUTE: _OUT,
    SHARDED_TO_UNREDUCED: _OUT,
    REPLICATED_TO_UNREDUCED: _OUT,
}
_LISTS = ("arg_attrs", "res_attrs")


def wrong_attributes(op: Op) -> Iterator[tuple[str, Any, str]]:
    """Yield the attributes of Shardy on an op that hold something else: name, value, and words for what they hold.

    One that the op needs and does not have has the value None.
    """
    attributes = op.attributes
    yield from _wrong_in(attributes, _EVERYWHERE)
    needed = _OF_OP.get(op.name, {})
    yield from _wrong_in({name: attributes.get(name) for name in needed}, needed)
    if op.name == PROPAGATION_BARRIER and not _is_direction(attributes.get(DIRECTION)):
        yield DIRECTION, attributes.get(DIRECTION), f"direction: {', '.join(DIRECTIONS)}"
    for name in _LISTS:
        items = attributes.get(name)
        for item in items if isinstance(items, tuple) else ():
            if isinstance(item, Mapping):
                yield from _wrong_in(item, {SHARDING: (TensorSharding,)})


def _is_direction(value: object) -> bool:
    """Return whether this is a direction: the number or the name of one, or MLIR's attribute with either in it."""
    return not isinstance(value, bool) and direction_code(value) is not None


def _wrong_in(attributes: Mapping[str, Any], expected: Expected) -> Iterator[tuple[str, Any, str]]:
    for name, types in expected.items():
        if name in attributes and (not isinstance(attributes[name], types) or isinstance(attributes[name], bool)):
            yield name, attributes[name], " or ".join(type_.__name__ for type_ in types)
