"""Loops over maps, accesses under conditions and reductions over lanes in ops of ``scf``, ``gpu`` and ``func``."""

from __future__ import annotations

from typing import cast

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import arith, builtin, scf, tensor
from xdsl.dialects import complex as complex_dialect
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.dialect.gpu import ShuffleOp
from shardy_py.kernels.dialect.memory_ops import PredicatedExtractOp, PredicatedInsertOp, ShuffleReduceOp
from shardy_py.kernels.dialect.ops import LoopOp, PureCallOp
from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.elemental.scope import EmissionContext, Scope
from shardy_py.kernels.fusion.fusion import bits_of
from shardy_py.kernels.passes.base import (
    KernelContext,
    add_before,
    inline_block,
    inner_first,
    insert_before,
    replace,
    walk_ops,
)
from shardy_py.kernels.passes.index_ranges import fold_branches
from shardy_py.kernels.passes.lower_tiles import lower_tensor_values, lower_tiles
from shardy_py.values import frozen

_WORD_BITS = 32


@frozen
class LowerToScf:
    """Turn predicated accesses into ``scf.if``, reductions over lanes into shuffles and calls, tiles into vectors.

    Args:
        keeps_reductions: Whether reductions over lanes stay what they are.
    """

    keeps_reductions: bool = False
    name: str = "lower-to-scf"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        lower_tiles(module)
        for op in walk_ops(module.body):
            if isinstance(op, PredicatedExtractOp):
                assert isinstance(op.source.type, builtin.TensorType)
                read = tensor.ExtractOp(op.source, list(op.indices), op.source.type.element_type)
                replace(op, [_branch(op, op.condition, read, op.fallback)])
            elif isinstance(op, PredicatedInsertOp):
                written = tensor.InsertOp(op.value, op.dest, list(op.indices))
                replace(op, [_branch(op, op.condition, written, op.dest)])
            elif isinstance(op, ShuffleReduceOp) and not (self.keeps_reductions and op.max_distance.value.data):
                replace(op, _combined(op, context.device.threads_per_warp))
        lower_tensor_values(module, _branch)
        fold_branches(module)


def _branch(before: Operation, condition: SSAValue, access: Operation, otherwise: SSAValue) -> SSAValue:
    then = Block([access, scf.YieldOp(access.results[0])])
    types: list[Attribute] = [otherwise.type]
    return insert_before(before, scf.IfOp(condition, types, Region(then), Region(Block([scf.YieldOp(otherwise)]))))


def _combined(op: ShuffleReduceOp, lanes: int) -> list[SSAValue]:
    """Return the values combined with those of the lanes further down, the farthest first."""
    values = list(op.arguments)
    exchange = _Exchange(op, lanes)
    distance = op.max_distance.value.data
    while distance:
        others = [exchange.shuffled(value, distance) for value in values]
        call = PureCallOp(op.combiner.string_value(), [*values, *others], [value.type for value in values])
        add_before(op, call)
        values = list(call.outputs)
        distance //= 2
    return values


class _Exchange:
    """Shuffles before an op: lanes exchange words of 32 bits."""

    def __init__(self, op: Operation, lanes: int) -> None:
        self._op = op
        self._width = self._word(lanes)

    def _word(self, value: int) -> SSAValue:
        return insert_before(self._op, arith.ConstantOp(builtin.IntegerAttr(value, builtin.i32)))

    def _add(self, op: Operation) -> SSAValue:
        return insert_before(self._op, op)

    def shuffled(self, value: SSAValue, distance: int) -> SSAValue:
        """Return the value of the lane whose number is larger by a distance."""
        type_ = value.type
        if isinstance(type_, builtin.ComplexType):
            parts = [self._add(part(value)) for part in (complex_dialect.ReOp, complex_dialect.ImOp)]
            real, imaginary = (self.shuffled(part, distance) for part in parts)
            return self._add(complex_dialect.CreateOp(real, imaginary, type_))
        bits = type_.width.data if isinstance(type_, builtin.IntegerType) else bits_of(str(type_))
        if bits == _WORD_BITS:
            return self._add(ShuffleOp(value, self._word(distance), self._width))
        integer = builtin.IntegerType(bits)
        is_integer = isinstance(type_, builtin.IntegerType)
        integer_value = value if is_integer else self._add(arith.BitcastOp(value, integer))
        move = self._widened if bits < _WORD_BITS else self._halves
        shuffled_bits = move(integer_value, integer, distance)
        return shuffled_bits if is_integer else self._add(arith.BitcastOp(shuffled_bits, type_))

    def _widened(self, value: SSAValue, type_: builtin.IntegerType, distance: int) -> SSAValue:
        word = self._add(arith.ExtUIOp(value, builtin.i32))
        return self._add(arith.TruncIOp(self.shuffled(word, distance), type_))

    def _halves(self, value: SSAValue, type_: builtin.IntegerType, distance: int) -> SSAValue:
        shift = self._add(arith.ConstantOp(builtin.IntegerAttr(_WORD_BITS, type_)))
        words = (value, self._add(arith.ShRUIOp(value, shift)))
        moved = [self.shuffled(self._add(arith.TruncIOp(word, builtin.i32)), distance) for word in words]
        low, high = (self._add(arith.ExtUIOp(word, type_)) for word in moved)
        return self._add(arith.OrIOp(low, self._add(arith.ShLIOp(high, shift))))


@frozen
class LoopsToScf:
    """Turn each loop into a ``scf.for`` per symbol around an ``scf.if`` on its bounds and constraints."""

    name: str = "lower-loops-to-scf"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in inner_first(module, LoopOp):
            _lower(op)


def _lower(loop: LoopOp) -> None:
    parent = loop.parent
    assert parent is not None
    builder = Builder(InsertPoint.before(loop))
    replace(loop, _nest(loop, builder, 0, [], list(loop.inits)))


def _nest(
    loop: LoopOp, builder: Builder, depth: int, symbols: list[SSAValue], carried: list[SSAValue]
) -> list[SSAValue]:
    map_ = loop.map
    bounds = [*map_.ranges, *map_.runtimes]
    if depth == len(bounds):
        return _guarded(loop, builder, symbols, carried)
    scope = _indices_only(builder)
    interval = bounds[depth].interval
    low, high, step = (scope.index(number) for number in (interval.lower, interval.upper + 1, 1))
    block = Block(arg_types=[INDEX, *(value.type for value in carried)])
    inner = Builder(InsertPoint.at_end(block))
    index, *arguments = block.args
    yielded = _nest(loop, inner, depth + 1, [*symbols, index], list(arguments))
    inner.insert(scf.YieldOp(*yielded))
    for_op = scf.ForOp(low, high, step, carried, Region(block))
    builder.insert(for_op)
    return list(for_op.results)


def _guarded(loop: LoopOp, builder: Builder, symbols: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
    map_ = loop.map
    condition = _indices_only(builder).inside(map_, list(loop.dims), symbols)
    then, otherwise = Block(), Block()
    inner = _indices_only(Builder(InsertPoint.at_end(then)))
    indices = inner.apply(IndexingMap(map_.results, map_.dims, map_.ranges, map_.runtimes), list(loop.dims), symbols)
    marker = scf.YieldOp()
    then.add_op(marker)
    yielded = inline_block(loop.body.block, marker, [*symbols, *indices, *carried])
    marker.detach()
    marker.erase()
    then.add_op(scf.YieldOp(*yielded))
    otherwise.add_op(scf.YieldOp(*carried))
    branch = scf.IfOp(condition, [value.type for value in carried], Region(then), Region(otherwise))
    builder.insert(branch)
    return list(branch.results)


def _indices_only(builder: Builder) -> Scope:
    """Return a scope that computes indices, and no elements."""
    return Scope(cast(EmissionContext, None), builder)
