"""Loops of ``scf`` over the symbols of a map from threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from shardy_py.indexing import IndexingMap
from shardy_py.kernels.dialect.syntax import INDEX
from shardy_py.kernels.elemental.builder import Scope

Body = Callable[[Scope, Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]
"""From a scope, the symbols and the carried values to the values that are carried on."""


def loop_over_symbols(
    scope: Scope, map_: IndexingMap, dims: Sequence[SSAValue], inits: Sequence[SSAValue], body: Body
) -> list[SSAValue]:
    """Emit a loop per symbol of a map, inside them the body where the map is defined, and return what they carry.

    Args:
        scope: Where the loops are added.
        map_: The map.
        dims: The values of its dimensions.
        inits: The carried values before the loops.
        body: Emits the body.
    """
    # Mirrors XLA's EmitLoopNest, which makes the step also where there is no loop.
    step = scope.index(1)
    bounds = [(scope.index(item.interval.lower), scope.index(item.interval.upper + 1)) for item in map_.ranges]

    def nest(scope: Scope, symbols: tuple[SSAValue, ...], carried: Sequence[SSAValue]) -> list[SSAValue]:
        if len(symbols) == len(bounds):
            return _guarded(scope, map_, dims, symbols, carried, body)
        lower, upper = bounds[len(symbols)]
        with scope.block([INDEX, *(value.type for value in carried)]) as (inner, block):
            found = nest(inner, (*symbols, block.args[0]), block.args[1:])
            inner.builder.insert(scf.YieldOp(*found))
        loop = scf.ForOp(lower, upper, step, list(carried), Region(block))
        scope.builder.insert(loop)
        return list(loop.results)

    return nest(scope, (), inits)


def _guarded(
    scope: Scope,
    map_: IndexingMap,
    dims: Sequence[SSAValue],
    symbols: Sequence[SSAValue],
    carried: Sequence[SSAValue],
    body: Body,
) -> list[SSAValue]:
    condition = scope.inside(map_, dims, symbols)
    with scope.block() as (inner, then):
        inner.builder.insert(scf.YieldOp(*body(inner, symbols, carried)))
    otherwise = Block([scf.YieldOp(*carried)])
    op = scf.IfOp(condition, [value.type for value in carried], Region(then), Region(otherwise))
    scope.builder.insert(op)
    return list(op.results)
