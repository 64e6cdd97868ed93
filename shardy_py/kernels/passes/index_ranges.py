"""The intervals of index values in a kernel."""

from __future__ import annotations

from xdsl.dialects import arith, builtin, func, scf
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from shardy_py.indexing import Interval
from shardy_py.indexing.ranges import Ranges
from shardy_py.kernels.dialect.gpu import BlockIdOp, ThreadIdOp
from shardy_py.kernels.dialect.ops import ApplyIndexingOp, LoopOp
from shardy_py.kernels.elemental.functions import RANGE
from shardy_py.kernels.passes.base import constant_value


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
