"""Checks of Shardy's attributes on the ops of an xDSL module, which xDSL does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.ir.graph import Op
from shardy_py.ir.op_names import CONSTRAINT, MANUAL_COMPUTATION, MESH, NAMED_COMPUTATION, RESHARD
from shardy_py.ir.rule_attributes import RULE_ATTRIBUTE
from shardy_py.ir.shardings import SHARDING
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import ManualAxes, TensorSharding, TensorShardingPerValue
from shardy_py.sharding.verify import verify_mesh

_EVERYWHERE: Mapping[str, tuple[type, ...]] = {
    SHARDING: (TensorSharding, TensorShardingPerValue),
    RULE_ATTRIBUTE: (OpShardingRule,),
}
_PER_VALUE = {"in_shardings": (TensorShardingPerValue,), "out_shardings": (TensorShardingPerValue,)}
_OF_OP: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    MESH: {"mesh": (Mesh,), "sym_name": (str,)},
    CONSTRAINT: {"sharding": (TensorSharding,)},
    RESHARD: {"sharding": (TensorSharding,)},
    NAMED_COMPUTATION: {"name": (str,)},
    MANUAL_COMPUTATION: {**_PER_VALUE, "manual_axes": (ManualAxes,)},
}
_LISTS = ("arg_attrs", "res_attrs")


def check_attributes(op: Op) -> None:
    """Check that attributes of Shardy hold what they are for.

    Raises:
        ParseError: one is missing, holds something else, or is a mesh that is not valid.
    """
    problems = [
        Diagnostic("malformed-attribute", f"{name} holds {value}, which is no {expected}", op.location, op.name)
        for name, value, expected in _wrong(op)
    ]
    mesh = op.attributes.get("mesh") if op.name == MESH else None
    if isinstance(mesh, Mesh):
        problems += [evolve(item, location=op.location, op=op.name) for item in verify_mesh(mesh)]
    if problems:
        raise ParseError(*problems)


def _wrong(op: Op) -> Iterator[tuple[str, Any, str]]:
    attributes = op.attributes
    yield from _wrong_in(attributes, _EVERYWHERE)
    needed = _OF_OP.get(op.name, {})
    yield from _wrong_in({name: attributes.get(name) for name in needed}, needed)
    for name in _LISTS:
        items = attributes.get(name)
        for item in items if isinstance(items, tuple) else ():
            if isinstance(item, Mapping):
                yield from _wrong_in(item, {SHARDING: (TensorSharding,)})


def _wrong_in(
    attributes: Mapping[str, Any], expected: Mapping[str, tuple[type, ...]]
) -> Iterator[tuple[str, Any, str]]:
    for name, types in expected.items():
        if name in attributes and not isinstance(attributes[name], types):
            yield name, attributes[name], " or ".join(type_.__name__ for type_ in types)
