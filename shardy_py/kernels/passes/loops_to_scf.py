"""Loops over maps as nests of ``scf.for``."""

from __future__ import annotations

from typing import cast

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import builtin, scf
from xdsl.ir import Block, Region, SSAValue

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.dialect.ops import LoopOp
from shardy_py.kernels.dialect.syntax import INDEX
from shardy_py.kernels.elemental.builder import EmissionContext, Scope
from shardy_py.kernels.passes.base import KernelContext, inline_block, inner_first, replace
from shardy_py.values import frozen


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
    index, *own = block.args
    found = _nest(loop, inner, depth + 1, [*symbols, index], list(own))
    inner.insert(scf.YieldOp(*found))
    made = scf.ForOp(low, high, step, carried, Region(block))
    builder.insert(made)
    return list(made.results)


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
    made = scf.IfOp(condition, [value.type for value in carried], Region(then), Region(otherwise))
    builder.insert(made)
    return list(made.results)


def _indices_only(builder: Builder) -> Scope:
    """Return a scope that computes indices, and no elements."""
    return Scope(cast(EmissionContext, None), builder)
