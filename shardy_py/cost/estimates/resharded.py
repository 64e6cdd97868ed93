"""Operands that are resharded for the op that reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.ir.graph.op_names import ALL_GATHER, ALL_SLICE, ALL_TO_ALL, COLLECTIVE_PERMUTE
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape

_STEPS = frozenset((ALL_GATHER, ALL_SLICE, ALL_TO_ALL, COLLECTIVE_PERMUTE))


def reshards_before(value: Value) -> Iterator[Op]:
    """Yield the ops that reshard a tensor into a value, the last one first."""
    made = value.defining_op
    while made is not None and made.name in _STEPS:
        yield made
        made = made.operands[0].defining_op


def is_sliced_from_whole(value: Value, dims: Iterable[int], sizes: LocalSizes) -> bool:
    """Return whether each device had some dimensions whole, and sliced its part of them last."""
    made = value.defining_op
    if made is None or made.name != ALL_SLICE:
        return False
    shape = static_shape(made.operands[0].type)
    return shape is not None and all(sizes.shape(made.operands[0])[dim] == shape[dim] for dim in dims)
