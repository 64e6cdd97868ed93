"""Formulas over floats, written with operators, as ops of ``arith`` and ``math``."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from shardy_py.kernels.elemental.scalars import make_constant, make_op
from shardy_py.kernels.passes.base import insert_before
from shardy_py.values import frozen


@frozen(eq=False)
class ScalarTerm:
    """A float of a kernel; operators add the ops that compute with it.

    Args:
        value: The value.
        before: The op that new ops stand before.
    """

    value: SSAValue
    before: Operation

    @property
    def type(self) -> Attribute:
        """The type of the value."""
        return self.value.type

    def of(self, value: ScalarTerm | float) -> SSAValue:
        """Return a number as a value of this type."""
        if isinstance(value, ScalarTerm):
            return value.value
        return insert_before(self.before, make_constant(value, str(self.type)))

    def _term(self, name: str, *operands: SSAValue) -> ScalarTerm:
        return ScalarTerm(insert_before(self.before, make_op(name, list(operands), self.type, {})), self.before)

    def __add__(self, other: ScalarTerm | float) -> ScalarTerm:
        return self._term("arith.addf", self.value, self.of(other))

    def __sub__(self, other: ScalarTerm | float) -> ScalarTerm:
        return self._term("arith.subf", self.value, self.of(other))

    def __mul__(self, other: ScalarTerm | float) -> ScalarTerm:
        return self._term("arith.mulf", self.value, self.of(other))

    def __truediv__(self, other: ScalarTerm | float) -> ScalarTerm:
        return self._term("arith.divf", self.value, self.of(other))

    def __neg__(self) -> ScalarTerm:
        return self._term("arith.negf", self.value)

    def math(self, name: str, *others: ScalarTerm | float) -> ScalarTerm:
        """Return a function of ``math`` of this number and others."""
        return self._term(f"math.{name}", self.value, *(self.of(other) for other in others))

    def least(self, other: ScalarTerm | float) -> ScalarTerm:
        """Return the smaller number; a NaN if one is."""
        return self._term("arith.minimumf", self.value, self.of(other))

    def most(self, other: ScalarTerm | float) -> ScalarTerm:
        """Return the larger number; a NaN if one is."""
        return self._term("arith.maximumf", self.value, self.of(other))

    def compare(self, predicate: str, other: ScalarTerm | float) -> SSAValue:
        """Return whether a predicate of ``arith.cmpf`` holds."""
        from xdsl.dialects.builtin import i1

        comparison = make_op("arith.cmpf", [self.value, self.of(other)], i1, {"predicate": predicate})
        return insert_before(self.before, comparison)

    def where(self, condition: SSAValue, otherwise: ScalarTerm | float) -> ScalarTerm:
        """Return this number where a condition holds, else another one."""
        return self._term("arith.select", condition, self.value, self.of(otherwise))

    def polynomial(self, coefficients: Sequence[float]) -> ScalarTerm:
        """Return a polynomial at this number, by Horner's rule with fused steps.

        Args:
            coefficients: The coefficients, that of the highest power first.
        """
        result = ScalarTerm(self.of(coefficients[0]), self.before)
        for coefficient in coefficients[1:]:
            result = result.math("fma", self, coefficient)
        return result
