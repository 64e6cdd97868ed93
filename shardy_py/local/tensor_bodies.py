"""Regions that compute on tensors, and not on single elements."""

from __future__ import annotations

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import region_arguments


def has_tensor_body(op: Op) -> bool:
    """Return whether a region of an op takes, makes or captures a tensor with dimensions.

    The combiner of a reduction has scalars only, and is the same on shards. A region with tensors of its own has the
    sizes of whole tensors: nothing says how the shards of the operands become those of its arguments.
    """
    return any(
        any(map(_has_dimensions, (*inner.operands, *inner.results, *region_arguments(inner))))
        for region in op.regions
        for block in region.blocks
        for inner in block.walk()
    ) or any(map(_has_dimensions, region_arguments(op)))


def _has_dimensions(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.rank > 0
