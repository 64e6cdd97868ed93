"""Changes of loops: short ones unrolled, last trips peeled off, invariant conditions moved out."""

from __future__ import annotations

from attrs import evolve
from xdsl.dialects import arith, builtin, func, scf, vector
from xdsl.dialects import math as math_dialect
from xdsl.ir import Block, Operation, Region, SSAValue

from shardy_py.indexing import Bound, IndexingMap, Interval, Variable, VariableKind, simplify
from shardy_py.indexing.expressions import variables_of
from shardy_py.kernels.dialect.ops import ApplyIndexingOp, LoopOp
from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.passes.apply_indexing import fold_apply
from shardy_py.kernels.passes.base import (
    KernelContext,
    add_before,
    constant_value,
    erase_dead_ops,
    index_before,
    inline_block,
    inner_first,
    insert_before,
    replace,
    walk_ops,
)
from shardy_py.kernels.passes.canonicalize import shorten_loop
from shardy_py.kernels.passes.index_ranges import fold_branches
from shardy_py.values import frozen

_CHEAP_MATH = (
    *(math_dialect.AbsFOp, math_dialect.CeilOp, math_dialect.CopySignOp, math_dialect.FloorOp),
    *(math_dialect.FmaOp, math_dialect.RoundOp, math_dialect.RsqrtOp, math_dialect.SqrtOp, math_dialect.TruncOp),
)
_LARGE_MATH = frozenset(
    f"math.{name}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "sin", "tan", "powf")
)


@frozen
class UnrollLoops:
    """Repeat the body of short loops: up to four times as a whole, longer loops as far as the code stays small.

    Args:
        max_ops: The number of ops up to which the body of a longer loop is repeated.
        full: The number of trips up to which a loop goes away.
    """

    max_ops: int = 400
    full: int = 4
    name: str = "optimize-loops"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        loops = [op for op in walk_ops(module.body) if isinstance(op, scf.ForOp)]
        for loop in reversed(loops):
            factor = self._factor(loop)
            if factor > 1:
                unroll(loop, factor)
        for op in walk_ops(module.body):
            if isinstance(op, ApplyIndexingOp):
                fold_apply(op)
        erase_dead_ops(module.body)

    def _factor(self, loop: scf.ForOp) -> int:
        trips = constant_value(loop.ub)
        if constant_value(loop.lb) != 0 or constant_value(loop.step) != 1 or trips is None or trips < 1:
            return 1
        if trips <= self.full and not any(isinstance(op, scf.ForOp) for op in loop.body.block.walk()):
            return trips
        size = _size(loop)
        if size is None:
            return 1
        most = self.max_ops // max(1, size)
        return max((factor for factor in range(1, min(most, trips) + 1) if trips % factor == 0), default=1)


def _size(loop: scf.ForOp) -> int | None:
    """Return the size of a loop's body in ops, float math counted twenty times; None where it is not repeated."""
    total = 0
    for op in loop.body.block.walk():
        if isinstance(op, scf.ForOp | func.CallOp):
            return None
        if op.name in _LARGE_MATH and op.name not in ("math.cos", "math.sin", "math.powf", "math.tan", "math.atan2"):
            return None
        cost = 20 if op.name.startswith("math.") and not isinstance(op, _CHEAP_MATH) else 1
        width = 1
        for result in op.results:
            if isinstance(result.type, builtin.VectorType) and not isinstance(op, vector.InsertOp):
                width = max(width, result.type.get_shape()[-1])
        total += cost * width
    return total


def unroll(loop: scf.ForOp, factor: int) -> None:
    """Repeat the body of a loop that begins at zero and takes single steps."""
    trips = constant_value(loop.ub)
    assert trips is not None
    if factor == trips:
        replace(loop, _repeated(loop, loop, list(loop.iter_args), 0, factor, None))
        return
    block = Block(arg_types=[INDEX, *(value.type for value in loop.iter_args)])
    first, *carried = block.args
    marker = scf.YieldOp()
    block.add_op(marker)
    results = _repeated(loop, marker, list(carried), 0, factor, first)
    marker.detach()
    marker.erase()
    block.add_op(scf.YieldOp(*results))
    step = index_before(loop, factor)
    unrolled = scf.ForOp(loop.lb, loop.ub, step, list(loop.iter_args), Region(block))
    parent = loop.parent
    assert parent is not None
    parent.insert_op_before(unrolled, loop)
    replace(loop, list(unrolled.results))


def _repeated(
    loop: scf.ForOp, before: Operation, carried: list[SSAValue], start: int, count: int, base: SSAValue | None
) -> list[SSAValue]:
    """Put copies of a loop's body before an op; return what the last one gives."""
    for number in range(start, start + count):
        index = index_before(before, number)
        if base is not None:
            index = insert_before(before, arith.AddiOp(base, index))
        body = loop.body.clone()
        carried = inline_block(body.block, before, [index, *carried])
    return carried


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
            full_trips = _limited(loop.map, number, Interval(interval.lower, interval.upper - 1))
            if full_trips.is_known_empty or _checks(full_trips, number):
                continue
            rest = _limited(loop.map, number, Interval(interval.upper, interval.upper))
            loop = _split(loop, full_trips, rest)


def _limited(map_: IndexingMap, number: int, interval: Interval) -> IndexingMap:
    ranges = list(map_.ranges)
    ranges[number] = Bound(interval, ranges[number].name)
    return simplify(evolve(map_, ranges=tuple(ranges)))


def _checks(map_: IndexingMap, number: int) -> bool:
    """Return whether a constraint mentions a symbol."""
    symbol = Variable(VariableKind.RANGE, number)
    return any(symbol in variables_of(expression) for expression, _ in map_.constraints)


def _split(loop: LoopOp, full_trips: IndexingMap, rest: IndexingMap) -> LoopOp:
    """Split a loop into one over the full trips and one over the rest; return the first."""
    first = LoopOp(full_trips, list(loop.dims), list(loop.inits), loop.body.clone())
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


@frozen
class UnswitchLoops:
    """Turn a loop around nothing but an if on an invariant condition into an if around the loop."""

    name: str = "unswitch-loops"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        # An if that leaves an inner loop may leave the outer one, too.
        for op in inner_first(module, scf.ForOp):
            _unswitch(op)
        fold_branches(module)


def _unswitch(loop: scf.ForOp) -> None:
    body = loop.body.block
    ops = list(body.ops)
    if len(ops) != 2 or not isinstance(ops[0], scf.IfOp):
        return
    branch, terminator = ops
    assert isinstance(branch, scf.IfOp)
    owner = branch.cond.owner
    if (isinstance(owner, Block) and owner is body) or list(terminator.operands) != list(branch.results):
        return
    if not branch.false_region.blocks or not _keeps(branch, loop):
        return
    parent = loop.parent
    assert parent is not None
    then = branch.true_region.block
    inner = Block(arg_types=[argument.type for argument in body.args])
    for argument, value in zip(body.args, inner.args, strict=True):
        argument.replace_all_uses_with(value)
    for op in list(then.ops):
        op.detach()
        inner.add_op(op)
    inner_loop = scf.ForOp(loop.lb, loop.ub, loop.step, list(loop.iter_args), Region(inner))
    then_block, else_block = Block(), Block()
    then_block.add_op(inner_loop)
    then_block.add_op(scf.YieldOp(*inner_loop.results))
    else_block.add_op(scf.YieldOp(*loop.iter_args))
    unswitched = scf.IfOp(branch.cond, [value.type for value in loop.results], Region(then_block), Region(else_block))
    parent.insert_op_before(unswitched, loop)
    replace(loop, list(unswitched.results))


def _keeps(branch: scf.IfOp, loop: scf.ForOp) -> bool:
    """Return whether the other branch does nothing but to give the carried values back."""
    ops = list(branch.false_region.block.ops)
    return len(ops) == 1 and list(ops[0].operands) == list(loop.body.block.args[1:])
