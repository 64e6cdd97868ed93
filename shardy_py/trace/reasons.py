"""Reasons of refusals, and the moves and refusals of one step, by positions of its tensors."""

from __future__ import annotations

from enum import Enum

from shardy_py.sharding.axes import AxisRef
from shardy_py.values import frozen


class Reason(Enum):
    """Reasons why a tensor did not take an axis."""

    CONFLICT = "conflict"
    LOST = "lost"
    OVERLAP = "overlap"
    CLOSED = "closed"
    REPLICATED = "replicated"
    UNREDUCED = "unreduced"
    DOES_NOT_DIVIDE = "does-not-divide"
    CONSERVATIVE = "conservative"
    BEHIND = "behind"
    SIDEWAYS = "sideways"
    STRIDED = "strided"
    BLOCKED = "blocked"
    FACTOR_KIND = "factor-kind"
    DIRECTION = "direction"
    PRIORITY = "priority"
    MESH = "mesh"
    NOT_REVISITED = "not-revisited"
    ERASED = "erased"
    MANUAL = "manual"
    NO_RULE = "no-rule"
    GROUP = "group"
    EDGE_OWNER = "edge-owner"
    BOUNDARY = "boundary"
    RESHARD = "reshard"
    NOT_OFFERED = "not-offered"
    NO_DIMENSION = "no-dimension"


MEANINGS: dict[Reason, str] = {
    Reason.CONFLICT: "two tensors of the op are sharded differently along the factor, and neither gives way",
    Reason.LOST: "another factor of the same tensor wanted the axis in the same step and was preferred",
    Reason.OVERLAP: "another dimension of the tensor has the axis, or a part of it, already",
    Reason.CLOSED: "the dimension is closed",
    Reason.REPLICATED: "the tensor has the axis among its explicitly replicated axes",
    Reason.UNREDUCED: "the tensor has the axis among its unreduced axes",
    Reason.DOES_NOT_DIVIDE: "the axis does not divide what is left of the factor",
    Reason.CONSERVATIVE: "only a sub-axis would fit, and conservative propagation introduces none",
    Reason.BEHIND: "the axis comes behind another one, which was refused",
    Reason.SIDEWAYS: "an operand of an elementwise op takes from other operands no more than the result has",
    Reason.STRIDED: "the more major factor of the dimension is not fully sharded: this would be a strided view",
    Reason.BLOCKED: "the rule blocks propagation along the factor",
    Reason.FACTOR_KIND: "factors of this kind do not propagate at this level of the schedule",
    Reason.DIRECTION: "the op does not propagate in this direction at this level of the schedule",
    Reason.PRIORITY: "the axis only came into play with a later user priority",
    Reason.MESH: "the tensors of the op are sharded over different meshes",
    Reason.NOT_REVISITED: "the op was not visited again after this got the axis, as the reference's order ends there",
    Reason.ERASED: "nobody uses what the op makes: it was erased, and not visited again after this got the axis",
    Reason.MANUAL: "the axis is manual in the computation: the tensors inside are local along it already",
    Reason.NO_RULE: "the op has no sharding rule",
    Reason.GROUP: "another member of the sharding group has the axis, and does not pass it on",
    Reason.EDGE_OWNER: "the value takes the sharding of its data-flow edge, which has not got the axis",
    Reason.BOUNDARY: (
        "inputs and outputs are sharded evenly: the axis, or a part of it, was taken away after propagation"
    ),
    Reason.RESHARD: "the op computes the tensor like this, and a reshard behind it gives what propagation found",
    Reason.NOT_OFFERED: "no tensor next to it has the axis on a dimension that corresponds",
    Reason.NO_DIMENSION: "the factor of the axis is not a dimension of this tensor",
}
"""Reason to its meaning in one line."""


@frozen
class StepRefusal:
    """A refusal: an axis that one tensor of a step has and another one did not get.

    Args:
        target: The position, among operands, then results, of the tensor without it.
        source: The position of the tensor that has it.
        factor: The factor along which it could have come.
        axis: The axis, or what of it did not come.
        reason: The reason.
        other: The position of the tensor in the way, where there is one.
        other_factor: The factor in the way, where there is one.
        by: The axes in the way, where there are any.
        detail: More about it, in numbers.
    """

    target: int
    source: int
    factor: int
    axis: AxisRef
    reason: Reason
    other: int | None = None
    other_factor: int | None = None
    by: tuple[AxisRef, ...] = ()
    detail: str = ""


@frozen
class StepMove:
    """A move: an axis that a tensor of a step got from another one.

    Args:
        target: The position of the tensor.
        source: The position of the tensor it came from.
        factor: The factor along which it came.
        axis: The axis, or the part that came.
    """

    target: int
    source: int
    factor: int
    axis: AxisRef
