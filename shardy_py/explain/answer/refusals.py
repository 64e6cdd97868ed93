"""Refusals of axes, by names."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.explain.answer.moves import dim_text
from shardy_py.trace.places import at_place
from shardy_py.values import frozen


@frozen
class CandidateDimension:
    """A dimension that has an axis.

    Args:
        value: The name of the tensor.
        dimension: The dimension.
        axes: The axes in question.
        origins: The annotations these go back to.
    """

    value: str
    dimension: int
    axes: tuple[str, ...]
    origins: tuple[str, ...] = ()


@frozen
class Refusal:
    """A refusal: an axis that a dimension has not got, with the reason.

    Args:
        code: The reason.
        axis: The axis, or the part of it, that is missing.
        text: The reason in a sentence.
        value: The tensor where the axis stopped, not the one in question where ``distance`` is not 0.
        dimension: The dimension there.
        distance: The number of ops between the two.
        op: The op at which it stopped, or "".
        location: Where that stands, or "".
        factor: The symbol of the factor in the op's rule, or "".
        candidate: The dimension that the axis would have come from.
        obstacle: The dimension that stood in the way.
        user_priority: The user priority in which this was decided, or of the last visit; -1 where there was none.
        level: The level of the schedule in which this was decided; -1 where there was none.
        strategy: The strategy with which this was decided, or "".
        earlier: The reasons at earlier levels.
        detail: More about it.
        rivals: Of a lost axis, the dimensions that would have taken it in turn, were the obstacle not there.
    """

    code: str
    axis: str
    text: str
    value: str
    dimension: int
    distance: int = 0
    op: str = ""
    location: str = ""
    factor: str = ""
    candidate: CandidateDimension | None = None
    obstacle: CandidateDimension | None = None
    user_priority: int = -1
    level: int = -1
    strategy: str = ""
    earlier: tuple[str, ...] = ()
    detail: str = ""
    rivals: tuple[CandidateDimension, ...] = ()


@frozen
class MissingAxis:
    """An axis, or the part of it, that a dimension has not got.

    Args:
        axis: The axis or part.
        reasons: The refusals; those by the tensor itself first, then those of candidates.
    """

    axis: str
    reasons: tuple[Refusal, ...]


def refusal_lines(refusals: tuple[Refusal, ...]) -> Iterator[str]:
    """Yield one line per refusal; equal lines, of several parts or candidates, once."""
    yield from dict.fromkeys(refusal_line(refusal) for refusal in refusals)


def refusal_line(refusal: Refusal) -> str:
    """Return a refusal as a line."""
    parts = [f"{refusal.code}: "]
    if refusal.candidate is not None:
        origins = f" (from {', '.join(refusal.candidate.origins)})" if refusal.candidate.origins else ""
        axes = ", ".join(refusal.candidate.axes)
        parts.append(f"{axes} on {dim_text(refusal.candidate.value, refusal.candidate.dimension)}{origins} ")
        if refusal.op:
            factor = f", factor {refusal.factor}" if refusal.factor else ""
            target = f" for {dim_text(refusal.value, refusal.dimension)}" if refusal.distance else ""
            parts.append(f"stopped{target} at {refusal.op}{at_place(refusal.location)}{factor}: ")
        else:
            parts.append("stopped: ")
    parts.append(refusal.text)
    if refusal.obstacle is not None and refusal.obstacle.origins:
        parts.append(f", from {', '.join(refusal.obstacle.origins)}")
    if refusal.level >= 0 and refusal.op:
        parts.append(f" [user priority {refusal.user_priority}, level {refusal.level}, {refusal.strategy}]")
    if refusal.earlier:
        parts.append(f" [before: {'; '.join(refusal.earlier)}]")
    if refusal.distance:
        parts.append(f" [{refusal.distance} op{'s' if refusal.distance > 1 else ''} away]")
    return "".join(parts)
