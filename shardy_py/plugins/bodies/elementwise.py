"""Indexing maps of elementwise ops."""

from __future__ import annotations

from shardy_py.indexing import OpIndexing, op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape


def elementwise_indexing(op: Op) -> OpIndexing | None:
    """Return the maps of an op that reads the element at its own place, of scalars the only one.

    None for other shapes, and for those that are not known.
    """
    output = static_shape(op.results[0].type) if op.results else None
    shapes = [static_shape(value.type) for value in op.operands]
    if output is None or any(shape not in (output, ()) for shape in shapes):
        return None
    identity = op_maps.identity(output)
    return OpIndexing([identity if shape == output else op_maps.scalar(output) for shape in shapes])
