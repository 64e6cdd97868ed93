"""What a trace lists: axes that moved, and axes that were refused."""

from __future__ import annotations

from attrs import frozen

from shardy_py.explain.record.reasons import Code, Refusal
from shardy_py.explain.record.step import StepExplanation
from shardy_py.ir.graph import Op, Value
from shardy_py.propagation.trace import Place
from shardy_py.sharding.axes import AxisRef


@frozen(eq=False)
class TracedRefusal:
    """A refusal and where it happened.

    Args:
        visit: The number of the visit.
        op: The op; the function for a function result.
        value: The value that carries the sharding that stayed without the axis; None where it cannot be sharded.
        dimension: The dimension of the value.
        place: The user priority, the level, and the strategy.
        refusal: What was refused and why, in terms of the step.
    """

    visit: int
    op: Op
    value: Value | None
    dimension: int
    place: Place
    refusal: Refusal

    @property
    def axis(self) -> AxisRef:
        """The axis, or what of it was refused."""
        return self.refusal.axis

    @property
    def reason(self) -> Code:
        """Why."""
        return self.refusal.code


@frozen(eq=False)
class TracedMove:
    """An axis that an accepted update brought onto a dimension.

    Args:
        visit: The number of the visit.
        op: The op; the function for a function result.
        value: The value that carries the sharding that got the axis.
        dimension: The dimension that got it.
        source: The value it came from.
        source_dimension: The dimension it came from.
        axis: The axis, or the part of it that came.
        factor: The factor of the op's rule; -1 for a sharding group, which follows one of its members.
        direction: ``forward``, ``backward``, ``sideways``, or ``group``.
        place: The user priority, the level, and the strategy.
    """

    visit: int
    op: Op
    value: Value
    dimension: int
    source: Value
    source_dimension: int
    axis: AxisRef
    factor: int
    direction: str
    place: Place


def direction_of(explanation: StepExplanation, source: int, target: int) -> str:
    """Return which way an axis goes from one tensor of a step to another."""
    split = len(explanation.old.operands)
    if (source < split) == (target < split):
        return "sideways"
    return "forward" if source < split else "backward"


def dimension_of(explanation: StepExplanation, position: int, factor: int) -> int:
    """Return which dimension of a tensor of a step a factor belongs to.

    Raises:
        ValueError: none.
    """
    for dimension, factors in enumerate(explanation.rule.mappings[position]):
        if factor in factors:
            return dimension
    raise ValueError(f"tensor {position} has no factor {factor}")
