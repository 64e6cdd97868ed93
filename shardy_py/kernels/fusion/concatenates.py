"""Concatenates: ops that join their operands along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from shardy_py.indexing import IndexingMap, op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape


def joined_dimension(op: Op) -> int:
    """Return the dimension along which a concatenate joins its operands."""
    output, *inputs = (static_shape(value.type) or () for value in (op.results[0], *op.operands))
    for number, size in enumerate(output):
        if any(shape[number] != size for shape in inputs):
            return number
    return 0


def joins_in_order(op: Op, maps: Sequence[IndexingMap]) -> bool:
    """Return whether the maps of an op put its operands one behind the other, each as it is."""
    output, *inputs = (static_shape(value.type) or () for value in (op.results[0], *op.operands))
    if not inputs or not output or any(len(shape) != len(output) for shape in inputs):
        return False
    dimension = joined_dimension(op)
    sizes = [shape[dimension] for shape in inputs]
    places = zip(accumulate(sizes, initial=0), sizes, strict=False)
    return all(
        map_ == op_maps.concatenate(output, dimension, offset, size)
        for map_, (offset, size) in zip(maps, places, strict=True)
    )
