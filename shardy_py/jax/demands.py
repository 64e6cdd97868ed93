"""Demands on the elements of a tensor: what they have to be so that a program computes something meaningful."""

from __future__ import annotations

from attrs import evolve

from shardy_py.values import frozen


@frozen
class Demand:
    """A demand on the elements of a tensor.

    Args:
        low: The smallest value; None for any.
        high: The largest value; None for any.
        shifted: Whether ``high`` went through an addition; it goes through one only, as a loop adds without end.
        distinct: Whether no two elements may be equal, as far as there are values enough.
        ordered: Whether the elements are in order, along all dimensions.
        whole: Whether floats are whole numbers.
        definite: Whether the two last dimensions are positive definite matrices, well conditioned.
        total: What the elements of the last dimension sum to; None for anything.
    """

    low: float | None = None
    high: float | None = None
    shifted: bool = False
    distinct: bool = False
    ordered: bool = False
    whole: bool = False
    definite: bool = False
    total: int | None = None

    def merge(self, other: Demand) -> Demand:
        """Return the demand that meets both; of two that exclude each other the bounds of one stay."""
        nearest = self if _bound(self.high) <= _bound(other.high) else other
        return Demand(
            low=_largest(self.low, other.low),
            high=nearest.high,
            shifted=nearest.shifted,
            distinct=self.distinct or other.distinct,
            ordered=self.ordered or other.ordered,
            whole=self.whole or other.whole,
            definite=self.definite or other.definite,
            total=self.total if other.total is None else other.total,
        )

    def shift(self, amount: float) -> Demand | None:
        """Return the demand on a value to which an amount is added; None where none follows."""
        if self.high is None or self.shifted or self.high < amount:
            return None
        return evolve(self, high=self.high - max(amount, 0), shifted=True, total=None)


POSITIVE = Demand(low=0.1)
INSIDE_UNIT = Demand(low=-0.9, high=0.9)
ABOVE_ONE = Demand(low=1.1)
DEFINITE = Demand(definite=True)


def up_to(high: int) -> Demand:
    """Return the demand on an index: from 0 to a largest value, which is at least 0."""
    return Demand(low=0, high=max(high, 0))


def _bound(value: float | None) -> float:
    return float("inf") if value is None else value


def _largest(left: float | None, right: float | None) -> float | None:
    return max((value for value in (left, right) if value is not None), default=None)
