"""Explanations as values: what a user asks about, with names instead of numbers."""

from __future__ import annotations

from attrs import frozen


@frozen
class Move:
    """One move of an axis from one dimension to another.

    Args:
        value: The name of the tensor that got the axis.
        dimension: The dimension that got it.
        source: The name of the tensor it came from.
        source_dimension: The dimension it came from.
        axis: The axis, or the part that moved.
        op: The op it went through, or of the member that changed in a sharding group.
        location: Where the op stands, or "".
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
class AxisChain:
    """How an axis, or a part of it, got onto a dimension.

    Args:
        axis: The axis or part.
        moves: The moves, the last one first.
        origin: Where it comes from.
    """

    axis: str
    moves: tuple[Move, ...]
    origin: Origin


@frozen
class Candidate:
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
class WhyNot:
    """One reason why an axis is not on a dimension.

    Args:
        code: The code of the reason.
        axis: What is missing.
        text: The reason in a sentence.
        value: The tensor where the axis stopped, not the one in question where ``distance`` is not 0.
        dimension: The dimension there.
        distance: How many ops lie between the two.
        op: The op at which it stopped, or "".
        location: Where that stands, or "".
        factor: The symbol of the factor in the op's rule, or "".
        candidate: What wanted to bring the axis and lost.
        obstacle: What stood in the way.
        user_priority: The user priority in which this was decided, or of the last visit; -1 where there was none.
        level: The level likewise.
        strategy: The strategy likewise, or "".
        earlier: What kept the axis back at earlier levels.
        detail: More about it.
        rivals: Of what was lost, what would have taken the axis in turn, were the obstacle not there.
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
    candidate: Candidate | None = None
    obstacle: Candidate | None = None
    user_priority: int = -1
    level: int = -1
    strategy: str = ""
    earlier: tuple[str, ...] = ()
    detail: str = ""
    rivals: tuple[Candidate, ...] = ()


@frozen
class NotSettled:
    """An axis that one more visit of an op would bring; the reference's order ends before it.

    Args:
        op: The op, with its results.
        location: Where it stands, or "".
        value: The tensor that would get the axis.
        dimension: The dimension that would.
        axis: The axis.
        source: The tensor that has it.
        source_dimension: The dimension that has it.
        factor: The symbol of the factor in the op's rule.
    """

    op: str
    location: str
    value: str
    dimension: int
    axis: str
    source: str
    source_dimension: int
    factor: str

    def __str__(self) -> str:
        place = f" at {self.location}" if self.location else ""
        ends = f"{self.value} dim {self.dimension} <- {self.source} dim {self.source_dimension} {self.axis}"
        return f"{ends}: through {self.op}{place}, factor {self.factor}"


@frozen
class MissingAxis:
    """An axis, or the part of it, that a dimension has not got.

    Args:
        axis: The axis or part.
        reasons: Why; the tensor's own reasons first, then the candidates.
    """

    axis: str
    reasons: tuple[WhyNot, ...]


@frozen
class DimensionExplanation:
    """Why a dimension is sharded as it is.

    Args:
        dimension: The number of the dimension.
        size: Its size; -1 where it is unknown.
        sharding: Its sharding after propagation.
        present: How its axes got there.
        missing: Why the other axes of the mesh did not.
    """

    dimension: int
    size: int
    sharding: str
    present: tuple[AxisChain, ...]
    missing: tuple[MissingAxis, ...]


@frozen
class ValueExplanation:
    """Why a tensor is sharded as it is.

    Args:
        value: Its name.
        type: Its type.
        op: The op that makes it, or "".
        location: Where that stands, or "".
        sharding: Its sharding after propagation, or "" for none.
        final: Its sharding in the result, or "" where the result does not have it.
        carrier: The tensor that carries its sharding, where that is another one of the same data-flow edge, or "".
        dimensions: The dimensions that were asked for.
    """

    value: str
    type: str
    op: str
    location: str
    sharding: str
    final: str
    carrier: str
    dimensions: tuple[DimensionExplanation, ...]

    def __str__(self) -> str:
        from shardy_py.explain.answer.text import format_value

        return format_value(self)


@frozen
class FactorExplanation:
    """One factor of an op's rule.

    Args:
        factor: Its symbol.
        size: Its size.
        kind: What sharding it costs (see `FactorKind`).
        is_blocked: Whether nothing propagates along it.
        places: The dimensions that have it.
        directions: In which direction it propagates, level by level.
        combiner: How partial results along it combine (see `Combiner`), ``not`` where they do not; "" for a factor
            that is not reduced.
    """

    factor: str
    size: int
    kind: str
    is_blocked: bool
    places: tuple[str, ...]
    directions: tuple[str, ...]
    combiner: str = ""


@frozen
class TensorOfOp:
    """An operand or result.

    Args:
        position: ``operand 0``, ``result 0`` and so on.
        value: The name of the tensor.
        sharding: Its sharding after propagation, or "".
    """

    position: str
    value: str
    sharding: str


@frozen
class OpExplanation:
    """What propagated through an op and what did not.

    Args:
        op: The op with its results.
        location: Where it stands, or "".
        rule: Its rule.
        tensors: Its operands and results.
        factors: The factors of its rule.
        accepted: What came through it, in order.
        refused: What did not come through it in its last visit, or lost in an earlier one.
    """

    op: str
    location: str
    rule: str
    tensors: tuple[TensorOfOp, ...]
    factors: tuple[FactorExplanation, ...]
    accepted: tuple[Move, ...]
    refused: tuple[WhyNot, ...]

    def __str__(self) -> str:
        from shardy_py.explain.answer.text import format_op

        return format_op(self)
