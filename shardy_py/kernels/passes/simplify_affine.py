"""Indexing maps as arithmetic on indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith, builtin
from xdsl.ir import Block, Operation, SSAValue

from shardy_py.indexing import Constant, Variable
from shardy_py.indexing.expressions import Binary, Expression
from shardy_py.indexing.indexing_map import Interval
from shardy_py.indexing.ranges import Ranges
from shardy_py.kernels.dialect.ops import ApplyIndexingOp
from shardy_py.kernels.dialect.types import index_attribute
from shardy_py.kernels.passes.base import KernelContext, erase_dead_ops, insert_before, replace, walk_ops
from shardy_py.kernels.passes.index_ranges import IndexRanges
from shardy_py.values import frozen

_DIVISIONS = ("/", "mod", "ceildiv")


@frozen
class SimplifyAffine:
    """Turn maps into ``arith`` where divisions see no negative numbers, so that they need no rounding down."""

    name: str = "simplify-affine"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        lower_maps(module, only_natural=True)


@frozen
class LowerAffine:
    """Turn the maps that are left into ``arith``, with divisions that round down."""

    name: str = "lower-affine"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        lower_maps(module, only_natural=False)


def lower_maps(module: builtin.ModuleOp, *, only_natural: bool) -> None:
    """Turn maps into arithmetic, in place.

    Args:
        module: The module.
        only_natural: Whether maps are left that divide what may be negative.
    """
    known = IndexRanges()
    shared: dict[Block, _Known] = {}
    for op in walk_ops(module.body):
        if not isinstance(op, ApplyIndexingOp):
            continue
        assert op.parent is not None
        intervals = {}
        for (variable, bound), value in zip(op.map.variables.items(), op.arguments, strict=True):
            value_interval: Interval | None = known.of(value)
            intervals[variable] = bound.interval if value_interval is None else bound.interval.meet(value_interval)
        ranges = Ranges(intervals)
        if only_natural and not all(_divides_naturals(result, ranges) for result in op.map.results):
            continue
        values = dict(zip(op.map.variables, op.arguments, strict=True))
        arithmetic = IndexArithmetic(op, values, ranges, shared.setdefault(op.parent, {}))
        replace(op, [arithmetic.value(result) for result in op.map.results])
    erase_dead_ops(module.body)


def _divides_naturals(expression: Expression, ranges: Ranges) -> bool:
    if not isinstance(expression, Binary):
        return True
    if expression.op in _DIVISIONS:
        is_natural = ranges.of(expression.left).lower >= 0 and ranges.of(expression.right).lower > 0
        if not is_natural or expression.op == "ceildiv":
            return False
    return _divides_naturals(expression.left, ranges) and _divides_naturals(expression.right, ranges)


_NO_WRAP = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])
_NO_WRAP_AT_ALL = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW, arith.IntegerOverflowFlag.NUW])


_Known = dict[tuple[object, ...], SSAValue]
"""The constants and the results that the ops of a block compute, by what computes them."""


class IndexArithmetic:
    """Ops that compute expressions, added before an op.

    Args:
        before: The op.
        values: The values of the variables.
        ranges: The intervals of expressions.
        known: What the block of the op computes before it; it is extended.
    """

    def __init__(self, before: Operation, values: Mapping[Variable, SSAValue], ranges: Ranges, known: _Known) -> None:
        self._before = before
        self._values = values
        self._ranges = ranges
        self._known = known

    def value(self, expression: Expression) -> SSAValue:
        """Return the value of an expression."""
        if isinstance(expression, Constant):
            return self._constant(expression.value)
        if isinstance(expression, Variable):
            return self._values[expression]
        assert isinstance(expression, Binary)
        left, right = self.value(expression.left), self.value(expression.right)
        match expression.op:
            case "+" | "*":
                flags = _NO_WRAP_AT_ALL if self._is_natural(expression) else _NO_WRAP
                return self._once(arith.AddiOp if expression.op == "+" else arith.MuliOp, left, right, flags)
            case "min" | "max":
                return self._once(arith.MinSIOp if expression.op == "min" else arith.MaxSIOp, left, right)
        return self._division(expression, left, right)

    def _constant(self, value: int) -> SSAValue:
        key = (arith.ConstantOp, value)
        if key not in self._known:
            self._known[key] = insert_before(self._before, arith.ConstantOp(index_attribute(value)))
        return self._known[key]

    def _once(
        self,
        class_: type[arith.SignlessIntegerBinaryOperation],
        left: SSAValue,
        right: SSAValue,
        flags: arith.IntegerOverflowAttr | None = None,
    ) -> SSAValue:
        """Return the result of an op on two values; equal ones of a block are computed once."""
        key = (class_, left, right, flags)
        if key not in self._known:
            op = class_(left, right)
            if flags is not None:
                op.properties["overflowFlags"] = flags
            self._known[key] = insert_before(self._before, op)
        return self._known[key]

    def _is_natural(self, expression: Binary) -> bool:
        """Return whether no number in an operation is negative."""
        return all(self._ranges.of(item).lower >= 0 for item in (expression, expression.left, expression.right))

    def _division(self, expression: Binary, left: SSAValue, right: SSAValue) -> SSAValue:
        """Return a quotient or remainder that rounds down; as the processor does it where nothing is negative."""
        divisor = self._ranges.of(expression.right)
        if self._ranges.of(expression.left).lower >= 0 and divisor.lower > 0 and expression.op != "ceildiv":
            return self._once(arith.RemUIOp if expression.op == "mod" else arith.DivUIOp, left, right)
        if expression.op == "ceildiv":
            return self._negated(self._floor(self._negated(left), right))
        quotient = self._floor(left, right)
        if expression.op != "mod":
            return quotient
        product = insert_before(self._before, arith.MuliOp(quotient, right))
        return insert_before(self._before, arith.SubiOp(left, product))

    def _negated(self, value: SSAValue) -> SSAValue:
        return insert_before(self._before, arith.SubiOp(self._constant(0), value))

    def _floor(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Return a quotient that rounds down, from one that rounds to zero."""
        add: Callable[[Operation], SSAValue] = lambda op: insert_before(self._before, op)  # noqa: E731
        zero = self._constant(0)
        quotient = add(arith.DivSIOp(left, right))
        rest = add(arith.RemSIOp(left, right))
        is_inexact = add(arith.CmpiOp(rest, zero, "ne"))
        signs_differ = add(arith.CmpiOp(add(arith.XOrIOp(rest, right)), zero, "slt"))
        is_above = add(arith.AndIOp(is_inexact, signs_differ))
        below = add(arith.AddiOp(quotient, self._constant(-1)))
        return add(arith.SelectOp(is_above, below, quotient))
