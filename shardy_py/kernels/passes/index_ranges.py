"""The intervals of index values in a kernel, and the comparisons, minima and maxima that they decide."""

from __future__ import annotations

from xdsl.dialects import arith, builtin, func, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from shardy_py.indexing import Interval
from shardy_py.indexing.ranges import Ranges
from shardy_py.kernels.dialect.gpu import BlockIdOp, ThreadIdOp
from shardy_py.kernels.dialect.ops import ApplyIndexingOp, LoopOp
from shardy_py.kernels.elemental.functions import RANGE
from shardy_py.kernels.passes.base import (
    KernelContext,
    constant_value,
    erase_dead_ops,
    inline_block,
    inner_first,
    insert_before,
    replace,
    walk_ops,
)
from shardy_py.values import frozen


class IndexRanges:
    """Intervals of index values, each found once."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Interval | None] = {}

    def of(self, value: SSAValue) -> Interval | None:
        """Return the interval of a value, or None where nothing is known of it."""
        if value not in self._known:
            self._known[value] = None
            self._known[value] = self._computed(value)
        return self._known[value]

    def _computed(self, value: SSAValue) -> Interval | None:
        constant = constant_value(value)
        if constant is not None:
            return Interval(constant, constant)
        if isinstance(value, BlockArgument):
            return self._argument(value)
        assert isinstance(value, OpResult)
        op = value.op
        if isinstance(op, ThreadIdOp | BlockIdOp):
            return interval_of(op.attributes.get(RANGE))
        if isinstance(op, ApplyIndexingOp):
            return self._applied(op, value.index)
        if isinstance(op, arith.AddiOp | arith.SubiOp | arith.MaxSIOp | arith.MinSIOp):
            return self._arithmetic(op)
        return None

    def _arithmetic(self, op: arith.AddiOp | arith.SubiOp | arith.MaxSIOp | arith.MinSIOp) -> Interval | None:
        left, right = self.of(op.lhs), self.of(op.rhs)
        if isinstance(op, arith.MaxSIOp | arith.MinSIOp) and (left is None) != (right is None):
            return None
        if left is None or right is None:
            return None
        if isinstance(op, arith.AddiOp):
            return Interval(left.lower + right.lower, left.upper + right.upper)
        if isinstance(op, arith.SubiOp):
            return Interval(left.lower - right.upper, left.upper - right.lower)
        choose = max if isinstance(op, arith.MaxSIOp) else min
        return Interval(choose(left.lower, right.lower), choose(left.upper, right.upper))

    def _argument(self, value: BlockArgument) -> Interval | None:
        block: Block = value.owner
        parent = block.parent_op()
        if isinstance(parent, func.FuncOp) and parent.arg_attrs is not None:
            attributes = parent.arg_attrs.data[value.index]
            return interval_of(attributes.data.get(RANGE))
        if isinstance(parent, scf.ForOp) and value.index == 0:
            low, high = constant_value(parent.lb), constant_value(parent.ub)
            return None if low is None or high is None else Interval(low, high - 1)
        if isinstance(parent, LoopOp):
            return self._loop_argument(parent, value.index)
        return None

    def _loop_argument(self, loop: LoopOp, number: int) -> Interval | None:
        map_ = loop.map
        bounds = [bound.interval for bound in (*map_.ranges, *map_.runtimes)]
        if number < len(bounds):
            return bounds[number]
        number -= len(bounds)
        if number >= len(map_.results):
            return None
        variables = {name: bound.interval for name, bound in map_.variables.items()}
        return Ranges(variables, dict(map_.constraints)).of(map_.results[number])

    def _applied(self, op: ApplyIndexingOp, number: int) -> Interval:
        map_ = op.map
        intervals = {}
        for (name, bound), operand in zip(map_.variables.items(), op.arguments, strict=True):
            known = self.of(operand)
            intervals[name] = bound.interval if known is None else bound.interval.meet(known)
        return Ranges(intervals).of(map_.results[number])


def interval_of(attribute: object) -> Interval | None:
    """Return the interval that an attribute ``xla.range`` says."""
    if not isinstance(attribute, builtin.ArrayAttr) or len(attribute.data) != 2:
        return None
    low, high = attribute.data
    assert isinstance(low, builtin.IntegerAttr)
    assert isinstance(high, builtin.IntegerAttr)
    return Interval(low.value.data, high.value.data)


@frozen
class SimplifyArith:
    """Fold what the ranges of indices decide, and branches on it."""

    name: str = "simplify-arith"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        ranges = IndexRanges()
        for op in walk_ops(module.body):
            folded = _folded(op, ranges) if type(op) in _FOLDED else None
            if folded is not None:
                replace(op, [folded])
        fold_branches(module)
        erase_dead_ops(module.body)


_FOLDED = frozenset(
    (
        *(arith.CmpiOp, arith.AndIOp, arith.OrIOp, arith.SelectOp),
        *(arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp),
    )
)


def _folded(op: Operation, ranges: IndexRanges) -> SSAValue | None:
    """Return the value that an op with one result always has, or None."""
    if isinstance(op, arith.CmpiOp):
        left, right = ranges.of(op.lhs), ranges.of(op.rhs)
        if left is None or right is None:
            return None
        decided = _decided(op.predicate.value.data, left, right)
        return None if decided is None else _condition(op, decided)
    if isinstance(op, arith.AndIOp | arith.OrIOp):
        return _folded_logic(op)
    if isinstance(op, arith.MinSIOp | arith.MaxSIOp | arith.MinUIOp | arith.MaxUIOp):
        return _folded_extremum(op, ranges)
    if isinstance(op, arith.SelectOp):
        condition = constant_value(op.cond)
        return None if condition is None else (op.lhs if condition else op.rhs)
    return None


def _condition(op: Operation, value: bool) -> SSAValue:
    return insert_before(op, arith.ConstantOp(builtin.IntegerAttr(-1 if value else 0, builtin.i1)))


def _decided(predicate: int, left: Interval, right: Interval) -> bool | None:
    """Return what a comparison of two intervals always gives, or None."""
    name = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")[predicate]
    if predicate > 5 and (left.lower < 0 or right.lower < 0):
        return None
    if name in ("gt", "ge"):
        left, right, name = right, left, {"gt": "lt", "ge": "le"}[name]
    match name:
        case "lt":
            return True if left.upper < right.lower else (False if left.lower >= right.upper else None)
        case "le":
            return True if left.upper <= right.lower else (False if left.lower > right.upper else None)
    equal = True if left.is_point and left == right else (False if left.meet(right).is_empty else None)
    return equal if equal is None or name == "eq" else not equal


def _folded_logic(op: arith.AndIOp | arith.OrIOp) -> SSAValue | None:
    if op.result.type != builtin.i1:
        return None
    absorbing = 0 if isinstance(op, arith.AndIOp) else 1
    for operand, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        value = constant_value(operand)
        if value is not None:
            return operand if (value & 1) == absorbing else other
    return None


def _folded_extremum(
    op: arith.MinSIOp | arith.MaxSIOp | arith.MinUIOp | arith.MaxUIOp, ranges: IndexRanges
) -> SSAValue | None:
    left, right = ranges.of(op.lhs), ranges.of(op.rhs)
    if left is None or right is None:
        return None
    if isinstance(op, arith.MinUIOp | arith.MaxUIOp) and (left.lower < 0 or right.lower < 0):
        return None
    is_max = isinstance(op, arith.MaxSIOp | arith.MaxUIOp)
    if left.upper <= right.lower:
        return op.rhs if is_max else op.lhs
    if right.upper <= left.lower:
        return op.lhs if is_max else op.rhs
    return None


def fold_branches(module: builtin.ModuleOp) -> None:
    """Put branches that are always taken in the place of their ifs, the inner ones first."""
    for op in inner_first(module, scf.IfOp):
        _fold_branch(op)


def _fold_branch(op: scf.IfOp) -> None:
    condition = constant_value(op.cond)
    if condition is None:
        return
    region = op.true_region if condition else op.false_region
    if not region.blocks:
        if not op.results:
            replace(op, [])
        return
    replace(op, inline_block(region.block, op, []))
