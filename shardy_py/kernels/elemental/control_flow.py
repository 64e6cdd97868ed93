"""The loops and branches of scalar bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.indexing import IndexingMap, rescale_symbols, simplify
from shardy_py.ir.graph.program import Op
from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.elemental.scalars import ScalarValue
from shardy_py.kernels.elemental.scope import Indices, Scope

LoopBody = Callable[[Sequence[ScalarValue], Sequence[ScalarValue]], Sequence[ScalarValue]]
"""From the results of a map and the values that a loop carries to the next ones."""


class ControlFlow:
    """Builds the loops and branches of the scalar body of an op.

    Args:
        scope: Where ops are added; that of the innermost block that is being built.
        of: The op.
        at: The index of the element.
    """

    def __init__(self, scope: Scope, of: Op, at: Indices) -> None:
        self.scope = scope
        self.of = of
        self.at = at
        self._over: set[Block | None] = set()

    def seen(self, values: Sequence[ScalarValue]) -> list[SSAValue]:
        """Return values that the body may still use.

        Raises:
            UnsupportedError: one was made in a loop or a branch of the body that is over.
        """
        owners = [item.value.owner for item in values]
        if not self._over.isdisjoint(owner if isinstance(owner, Block) else owner.parent for owner in owners):
            message = "the scalar body uses a value of a loop or a branch outside of it"
            hint = "let the loop carry it, or the branch give it"
            raise UnsupportedError(Diagnostic("scalar-op", message, self.of.location, self.of.name, hint))
        return [item.value for item in values]

    def choose(
        self, condition: ScalarValue, then: Callable[[], ScalarValue], otherwise: Callable[[], ScalarValue]
    ) -> ScalarValue:
        """Return the value of one of two branches."""
        regions, types = [], []
        for make in (then, otherwise):
            with self._inner() as (inner, block):
                value = make()
                inner.builder.insert(scf.YieldOp(value.value))
            types.append(value.value.type)
            regions.append(Region(block))
        if types[0] != types[1]:
            message = f"the branches of a choice give {types[0]} and {types[1]}"
            hint = "cast one to the type of the other"
            raise UnsupportedError(Diagnostic("scalar-op", message, self.of.location, self.of.name, hint))
        return ScalarValue(self.scope.add(scf.IfOp(condition.value, types[:1], regions[0], regions[1])))

    @contextmanager
    def _inner(self, argument_types: Sequence[Any] = ()) -> Iterator[tuple[Scope, Block]]:
        """Let all that bodies build go into a new block."""
        outer = self.scope
        with outer.block(argument_types) as (inner, block):
            self.scope = inner
            try:
                yield inner, block
            finally:
                self.scope = outer
                self._over.add(block)

    def reduce(
        self,
        map_: IndexingMap,
        initial: Sequence[ScalarValue],
        body: LoopBody,
        indices: Sequence[ScalarValue] | None = None,
    ) -> list[ScalarValue]:
        """Return values that a loop over the symbols of a map carries."""
        map_ = rescale_symbols(simplify(map_))
        if map_.is_known_empty:
            return list(initial)
        at = self.at if indices is None else tuple(index.value for index in indices)
        return self._nest(map_, at, [], list(initial), body)

    def _nest(
        self,
        map_: IndexingMap,
        at: Indices,
        symbols: list[ScalarValue],
        carried: list[ScalarValue],
        body: LoopBody,
    ) -> list[ScalarValue]:
        depth = len(symbols)
        while depth < len(map_.ranges) and map_.ranges[depth].interval.is_point:
            symbols = [*symbols, ScalarValue(self.scope.index(map_.ranges[depth].interval.lower))]
            depth += 1
        if depth == len(map_.ranges):
            return self._guarded(map_, at, symbols, carried, body)
        bounds = map_.ranges[depth].interval

        def step(number: ScalarValue, values: list[ScalarValue]) -> Sequence[ScalarValue]:
            return self._nest(map_, at, [*symbols, number], values, body)

        return self._loop(bounds.lower, bounds.upper + 1, carried, step)

    def _loop(
        self,
        start: int,
        end: int,
        initial: Sequence[ScalarValue],
        step: Callable[[ScalarValue, list[ScalarValue]], Sequence[ScalarValue]],
    ) -> list[ScalarValue]:
        """Build a loop over numbers; a step gives what the next one gets from the number and what is carried."""
        low, high, unit = (self.scope.index(number) for number in (start, end, 1))
        with self._inner([INDEX, *(item.value.type for item in initial)]) as (inner, block):
            number, *carried = map(ScalarValue, block.args)
            inner.builder.insert(scf.YieldOp(*(item.value for item in step(number, carried))))
        loop = scf.ForOp(low, high, unit, [item.value for item in initial], Region(block))
        self.scope.builder.insert(loop)
        return [ScalarValue(value) for value in loop.results]

    def _guarded(
        self,
        map_: IndexingMap,
        at: Indices,
        symbols: list[ScalarValue],
        carried: list[ScalarValue],
        body: LoopBody,
    ) -> list[ScalarValue]:
        values = [item.value for item in symbols]
        condition = self.scope.inside(map_, at, values)
        regions = []
        with self._inner() as (inner, block):
            yielded = self._carried_on(body(self._results(map_, at, values), carried), carried)
            inner.builder.insert(scf.YieldOp(*(item.value for item in yielded)))
        regions.append(Region(block))
        with self._inner() as (inner, block):
            inner.builder.insert(scf.YieldOp(*(item.value for item in carried)))
        regions.append(Region(block))
        op = scf.IfOp(condition, [item.value.type for item in carried], regions[0], regions[1])
        self.scope.builder.insert(op)
        return [ScalarValue(value) for value in op.results]

    def _carried_on(self, values: Sequence[ScalarValue], initial: Sequence[ScalarValue]) -> Sequence[ScalarValue]:
        """Check that the body of a loop yields values of the carried types, and return them.

        Raises:
            UnsupportedError: the types differ.
        """
        actual, expected = ([str(item.value.type) for item in group] for group in (values, initial))
        if actual != expected:
            message = f"the body of a loop gives ({', '.join(actual)}), the loop carries ({', '.join(expected)})"
            hint = "return a value of the same type for each initial one"
            raise UnsupportedError(Diagnostic("scalar-op", message, self.of.location, self.of.name, hint))
        return values

    def _results(self, map_: IndexingMap, at: Indices, symbols: list[SSAValue]) -> list[ScalarValue]:
        return [ScalarValue(value) for value in self.scope.apply(map_, at, symbols)]

    def repeat(
        self,
        count: int,
        initial: Sequence[ScalarValue],
        body: Callable[[Sequence[ScalarValue]], Sequence[ScalarValue]],
    ) -> list[ScalarValue]:
        """Return values that a loop carries a number of times."""
        return self._loop(0, count, initial, lambda _, carried: self._carried_on(body(carried), initial))
