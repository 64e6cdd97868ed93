"""Moves of axes, chains of moves, and refusals of axes, by names."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.trace.labels import at_place
from shardy_py.values import frozen


@frozen
class AxisMove:
    """A move of an axis from one dimension to another.

    Args:
        value: The name of the tensor that got the axis.
        dimension: The dimension that got it.
        source: The name of the tensor it came from.
        source_dimension: The dimension it came from.
        axis: The axis, or the part that moved.
        op: The op it went through, or of the member that changed in a sharding group.
        location: The place of the op in the source, or "".
        factor: The symbol of the factor in the op's rule, or "".
        direction: ``forward``, ``backward``, ``sideways``, or ``group``.
        user_priority: The user priority.
        level: The number of the level of the schedule.
        level_name: Its name, or "".
        strategy: ``basic`` or ``aggressive``.
    """

    value: str
    dimension: int
    source: str
    source_dimension: int
    axis: str
    op: str
    location: str
    factor: str
    direction: str
    user_priority: int
    level: int
    level_name: str
    strategy: str


@frozen
class Origin:
    """An annotation that an axis goes back to.

    Args:
        value: The name of the tensor it is on.
        dimension: The dimension.
        annotation: What is annotated, readable.
        kind: Its kind (see `Annotation`).
        sharding: The sharding.
        user_priority: The user priority of the dimension.
    """

    value: str
    dimension: int
    annotation: str
    kind: str
    sharding: str
    user_priority: int


@frozen
class Chain:
    """The way of an axis, or of a part of it, to a dimension.

    Args:
        axis: The axis or part.
        moves: The moves, the last one first.
        origin: The annotation it comes from.
    """

    axis: str
    moves: tuple[AxisMove, ...]
    origin: Origin


def chain_lines(chain: Chain) -> Iterator[str]:
    """Yield the lines of a chain: move by move back to the annotation."""
    for move in chain.moves:
        yield move_line(move)
    origin = chain.origin
    priority = f", user priority {origin.user_priority}" if origin.user_priority else ""
    yield f"{dim_text(origin.value, origin.dimension)}: annotated {origin.sharding}{priority}"


def move_line(move: AxisMove) -> str:
    """Return one move as a line."""
    through = f"{move.direction} through {move.op}{at_place(move.location)}"
    if move.direction == "group":
        through = f"with its sharding group, at {move.op}{at_place(move.location)}"
    factor = f", factor {move.factor}" if move.factor else ""
    name = f" ({move.level_name})" if move.level_name else ""
    where = f"user priority {move.user_priority}, level {move.level}{name}, {move.strategy}"
    source = dim_text(move.source, move.source_dimension)
    return f"{dim_text(move.value, move.dimension)} <- {source} {move.axis}: {through}{factor}; {where}"


def dim_text(value: str, dimension: int) -> str:
    """Return a dimension of a tensor as text: ``%0 dim 1``."""
    return f"{value} dim {dimension}"


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
