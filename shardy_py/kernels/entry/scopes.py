"""Scopes of entry functions, which compute elements by calls of functions, and loops over the symbols of their maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Value
from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.elemental.functions import FunctionEmitter, call_element
from shardy_py.kernels.elemental.scope import Indices, Scope


class _NoFunction:
    """The entry function computes no element itself."""

    def __init__(self, functions: FunctionEmitter) -> None:
        self.registry = functions.fusion.registry
        self.region_function = functions.region_function
        self.index_bits = functions.index_bits

    def computes(self, value: Value) -> bool:
        """Return False: what the entry function asks for is computed by others."""
        return False

    def outside(self, scope: Scope, value: Value, indices: Indices) -> None:
        """Return nothing."""


def entry_scope(functions: FunctionEmitter, block: Block) -> Scope:
    """Return a scope at the end of a block of the entry function."""
    return Scope(_NoFunction(functions), Builder(InsertPoint.at_end(block)))


def called_element(
    functions: FunctionEmitter, scope: Scope, value: Value, parameters: Sequence[SSAValue], indices: Sequence[SSAValue]
) -> SSAValue:
    """Return an element of a value, by a call of the function that computes it.

    Args:
        functions: The functions.
        scope: Where the call is added.
        value: A root of a function.
        parameters: The parameters of the fusion.
        indices: The index of the element.
    """
    function = functions.partition.function_of(functions.fusion.producer(value) or value)
    return call_element(scope, function, value, parameters, tuple(indices))


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
            yielded = nest(inner, (*symbols, block.args[0]), block.args[1:])
            inner.builder.insert(scf.YieldOp(*yielded))
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
