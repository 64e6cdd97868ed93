"""Values of several reductions at once: loops that carry them, tiles that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import builtin, tensor
from xdsl.ir import Attribute, SSAValue

from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Op
from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.elemental.scope import Scope

Values = Mapping[Op, Sequence[SSAValue]]
"""Per reduction a value for each of its results."""


def emit_loop(
    scope: Scope,
    map_: IndexingMap,
    dims: Sequence[SSAValue],
    inits: Sequence[SSAValue],
    body: Callable[[Scope, LoopOp], Sequence[SSAValue]],
) -> list[SSAValue]:
    """Emit a loop over the symbols of a map; its body gives what is carried on."""
    loop = LoopOp(map_, dims, inits)
    scope.builder.insert(loop)
    inner = Scope(scope.surroundings, Builder(InsertPoint.at_end(loop.body.block)), scope)
    inner.builder.insert(YieldOp(*body(inner, loop)))
    return list(loop.outputs)


def read_tiles(scope: Scope, tiles: Sequence[SSAValue], index: Sequence[SSAValue]) -> list[SSAValue]:
    """Read a value of each tile."""
    return [scope.add(tensor.ExtractOp(tile, list(index), scalar_of(tile))) for tile in tiles]


def write_tiles(
    scope: Scope, values: Sequence[SSAValue], tiles: Sequence[SSAValue], index: Sequence[SSAValue]
) -> list[SSAValue]:
    """Write a value into each tile."""
    pairs = zip(values, tiles, strict=True)
    return [scope.add(tensor.InsertOp(value, tile, list(index))) for value, tile in pairs]


def scalar_of(value: SSAValue) -> Attribute:
    """Return the type of the elements of a vector or tile, of another value its own."""
    if isinstance(value.type, builtin.VectorType | builtin.TensorType):
        return value.type.element_type
    return value.type


def by_reduction(like: Values, flat: Sequence[SSAValue]) -> Values:
    """Return values, given one after the other, per reduction."""
    ends = [0]
    for values in like.values():
        ends.append(ends[-1] + len(values))
    return {op: list(flat[first:last]) for op, (first, last) in zip(like, pairwise(ends), strict=True)}
