"""Expressions over indices as ops of ``arith``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import arith, builtin
from xdsl.ir import Operation, SSAValue

from shardy_py.indexing import Constant, Expression, Variable
from shardy_py.indexing.expressions import Binary
from shardy_py.indexing.ranges import Ranges
from shardy_py.kernels.dialect.syntax import INDEX
from shardy_py.kernels.passes.base import insert_before

_NO_WRAP = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])
_NO_WRAP_AT_ALL = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW, arith.IntegerOverflowFlag.NUW])


class IndexArithmetic:
    """Ops that compute expressions, added before an op.

    Args:
        before: The op.
        values: The values of the variables.
        ranges: The intervals of expressions.
    """

    def __init__(self, before: Operation, values: Mapping[Variable, SSAValue], ranges: Ranges) -> None:
        self._before = before
        self._values = values
        self._ranges = ranges

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
                made = (arith.AddiOp if expression.op == "+" else arith.MuliOp)(left, right)
                made.properties["overflowFlags"] = _NO_WRAP_AT_ALL if self._is_natural(expression) else _NO_WRAP
                return insert_before(self._before, made)
            case "min" | "max":
                class_ = arith.MinSIOp if expression.op == "min" else arith.MaxSIOp
                return insert_before(self._before, class_(left, right))
        return self._division(expression, left, right)

    def _constant(self, value: int) -> SSAValue:
        return insert_before(self._before, arith.ConstantOp(builtin.IntegerAttr(value, INDEX)))

    def _is_natural(self, expression: Binary) -> bool:
        """Return whether no number in an operation is negative."""
        return all(self._ranges.of(item).lower >= 0 for item in (expression, expression.left, expression.right))

    def _division(self, expression: Binary, left: SSAValue, right: SSAValue) -> SSAValue:
        """Return a quotient or remainder that rounds down; as the processor does it where nothing is negative."""
        divisor = self._ranges.of(expression.right)
        if self._ranges.of(expression.left).lower >= 0 and divisor.lower > 0 and expression.op != "ceildiv":
            class_ = arith.RemUIOp if expression.op == "mod" else arith.DivUIOp
            return insert_before(self._before, class_(left, right))
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
