"""Moves of axes and chains of moves, by names."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.trace.places import at_place
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
