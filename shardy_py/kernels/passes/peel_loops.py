"""Loops whose last trip alone has a constraint."""

from __future__ import annotations

from attrs import evolve
from xdsl.dialects import builtin
from xdsl.ir import SSAValue

from shardy_py.indexing import Bound, IndexingMap, Interval, Variable, VariableKind, simplify
from shardy_py.indexing.expressions import variables_of
from shardy_py.kernels.dialect.ops import LoopOp
from shardy_py.kernels.passes.base import KernelContext, add_before, inner_first, replace
from shardy_py.kernels.passes.canonicalize import shorten_loop
from shardy_py.values import frozen


@frozen
class PeelLoops:
    """Split the last trip off a loop if the others need no check then, from the last symbol on.

    Args:
        most_trips: The trips of the symbols behind one must be fewer, so that what is split off stays short.
    """

    most_trips: int = 64
    name: str = "peel-loops"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        # What an outer loop's copies hold is peeled before they are made.
        for loop in inner_first(module, LoopOp):
            self._peel(loop)

    def _peel(self, loop: LoopOp) -> None:
        trips = 1
        for number in reversed(range(len(loop.map.ranges))):
            if trips >= self.most_trips:
                return
            interval = loop.map.ranges[number].interval
            trips *= interval.size
            if interval.is_point or not _checks(simplify(loop.map), number):
                continue
            whole = _limited(loop.map, number, Interval(interval.lower, interval.upper - 1))
            if whole.is_known_empty or _checks(whole, number):
                continue
            rest = _limited(loop.map, number, Interval(interval.upper, interval.upper))
            loop = _split(loop, whole, rest)


def _limited(map_: IndexingMap, number: int, interval: Interval) -> IndexingMap:
    ranges = list(map_.ranges)
    ranges[number] = Bound(interval, ranges[number].name)
    return simplify(evolve(map_, ranges=tuple(ranges)))


def _checks(map_: IndexingMap, number: int) -> bool:
    """Return whether a constraint mentions a symbol."""
    symbol = Variable(VariableKind.RANGE, number)
    return any(symbol in variables_of(expression) for expression, _ in map_.constraints)


def _split(loop: LoopOp, whole: IndexingMap, rest: IndexingMap) -> LoopOp:
    """Put a loop over the whole trips and one over the rest in the place of a loop; return the first."""
    first = LoopOp(whole, list(loop.dims), list(loop.inits), loop.body.clone())
    add_before(loop, first)
    values: list[SSAValue] = list(first.outputs)
    if rest.is_known_empty:
        replace(loop, values)
        return first
    last = LoopOp(rest, list(loop.dims), values, loop.body.clone())
    add_before(loop, last)
    replace(loop, list(last.outputs))
    shorten_loop(last)
    return first
