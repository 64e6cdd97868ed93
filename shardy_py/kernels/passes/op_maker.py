"""Ops of ``arith`` and ``math`` that take the place of another one."""

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation, SSAValue

from shardy_py.kernels.elemental.scalars import make_constant, make_op
from shardy_py.kernels.passes.base import insert_before
from shardy_py.values import frozen


@frozen
class OpMaker:
    """Ops before one that they replace.

    Args:
        before: The op that is replaced.
    """

    before: Operation

    def op(self, name: str, *operands: SSAValue, dtype: Attribute | None = None, predicate: str = "") -> SSAValue:
        """Add an op, by default of the type of its last operand, and return its result."""
        type_ = operands[-1].type if dtype is None else dtype
        attributes = {"predicate": predicate} if predicate else {}
        return insert_before(self.before, make_op(name, list(operands), type_, attributes))

    def number(self, value: float, like: SSAValue) -> SSAValue:
        """Return a constant of the type of another value."""
        return insert_before(self.before, make_constant(value, str(like.type)))

    def integer(self, name: str, value: SSAValue, number: int) -> SSAValue:
        """Return an op of an integer and a constant."""
        return self.op(name, value, self.number(number, value))

    def compare(self, predicate: str, value: SSAValue, number: int) -> SSAValue:
        """Compare an integer with a constant."""
        return self.op("arith.cmpi", value, self.number(number, value), dtype=builtin.i1, predicate=predicate)

    def select(self, condition: SSAValue, then: SSAValue | int, otherwise: SSAValue | int) -> SSAValue:
        """Take one of two values, of which one may be a constant."""
        like = otherwise if isinstance(then, int) else then
        assert isinstance(like, SSAValue)
        values = [self.number(item, like) if isinstance(item, int) else item for item in (then, otherwise)]
        return self.op("arith.select", condition, *values)
