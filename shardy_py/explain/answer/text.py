"""Explanations as text."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.explain.answer.explanation import (
    AxisChain,
    DimensionExplanation,
    Move,
    OpExplanation,
    ValueExplanation,
    WhyNot,
)


def format_value(explanation: ValueExplanation) -> str:
    """Return the explanation of a tensor as lines."""
    return "\n".join(_value_lines(explanation))


def _value_lines(explanation: ValueExplanation) -> Iterator[str]:
    made = f", made by {explanation.op}" if explanation.op else ""
    place = f" at {explanation.location}" if explanation.location else ""
    yield f"{explanation.value}: {explanation.type}{made}{place}"
    if explanation.carrier:
        yield f"  its sharding is that of the data-flow edge of {explanation.carrier}"
    yield f"  sharding: {explanation.sharding or 'none'}"
    if explanation.final and _placed(explanation.final) != _placed(explanation.sharding):
        yield f"  in the result: {explanation.final}"
    for dimension in explanation.dimensions:
        yield ""
        yield from _dimension_lines(dimension)


def _placed(sharding: str) -> str:
    """Return a sharding without what only says whether it may change."""
    return sharding.replace(", ?", "").replace("?", "")


def _dimension_lines(one: DimensionExplanation) -> Iterator[str]:
    size = f" of size {one.size}" if one.size >= 0 else ""
    yield f"dimension {one.dimension}{size}: {one.sharding or 'no sharding'}"
    for chain in one.present:
        yield f"  {chain.axis} comes from {chain.origin.annotation}, dimension {chain.origin.dimension}"
        yield from (f"    {line}" for line in chain_lines(chain))
    for missing in one.missing:
        yield f"  {missing.axis} is not there"
        yield from (f"    {line}" for line in reason_lines(missing.reasons))


def chain_lines(chain: AxisChain) -> Iterator[str]:
    """Yield the lines of a chain: move by move back to the annotation."""
    for move in chain.moves:
        yield move_line(move)
    origin = chain.origin
    priority = f", user priority {origin.user_priority}" if origin.user_priority else ""
    yield f"{spot(origin.value, origin.dimension)}: annotated {origin.sharding}{priority}"


def move_line(move: Move) -> str:
    """Return one move as a line."""
    through = f"{move.direction} through {move.op}"
    if move.direction == "group":
        through = f"with its sharding group, at {move.op}"
    factor = f", factor {move.factor}" if move.factor else ""
    name = f" ({move.level_name})" if move.level_name else ""
    where = f"user priority {move.user_priority}, level {move.level}{name}, {move.strategy}"
    source = spot(move.source, move.source_dimension)
    return f"{spot(move.value, move.dimension)} <- {source} {move.axis}: {through}{factor}; {where}"


def reason_lines(reasons: tuple[WhyNot, ...]) -> Iterator[str]:
    """Yield one line per reason; the same reason for several parts or candidates once."""
    yield from dict.fromkeys(reason_line(reason) for reason in reasons)


def reason_line(reason: WhyNot) -> str:
    """Return a reason as a line."""
    parts = [f"{reason.code}: "]
    if reason.candidate is not None:
        origins = f" (from {', '.join(reason.candidate.origins)})" if reason.candidate.origins else ""
        axes = ", ".join(reason.candidate.axes)
        parts.append(f"{axes} on {spot(reason.candidate.value, reason.candidate.dimension)}{origins} ")
        if reason.op:
            factor = f", factor {reason.factor}" if reason.factor else ""
            target = f" for {spot(reason.value, reason.dimension)}" if reason.distance else ""
            parts.append(f"stopped{target} at {reason.op}{factor}: ")
        else:
            parts.append("stopped: ")
    parts.append(reason.text)
    if reason.obstacle is not None and reason.obstacle.origins:
        parts.append(f", from {', '.join(reason.obstacle.origins)}")
    if reason.level >= 0 and reason.op:
        parts.append(f" [user priority {reason.user_priority}, level {reason.level}, {reason.strategy}]")
    if reason.earlier:
        parts.append(f" [before: {'; '.join(reason.earlier)}]")
    if reason.distance:
        parts.append(f" [{reason.distance} op{'s' if reason.distance > 1 else ''} away]")
    return "".join(parts)


def format_op(explanation: OpExplanation) -> str:
    """Return the explanation of an op as lines."""
    return "\n".join(_op_lines(explanation))


def _op_lines(explanation: OpExplanation) -> Iterator[str]:
    yield explanation.op + (f" at {explanation.location}" if explanation.location else "")
    yield f"  rule: {explanation.rule}"
    for tensor in explanation.tensors:
        yield f"  {tensor.position} {tensor.value}: {tensor.sharding or 'no sharding'}"
    yield ""
    for factor in explanation.factors:
        blocked = ", propagation blocked" if factor.is_blocked else ""
        kind = factor.kind + (f" by {factor.combiner}" if factor.combiner not in ("", "add") else "")
        yield f"factor {factor.factor} of size {factor.size}, {kind}{blocked}: {', '.join(factor.places)}"
        yield f"  directions by level: {', '.join(factor.directions)}"
    yield ""
    yield "came through it:" if explanation.accepted else "nothing came through it"
    yield from (f"  {move_line(move)}" for move in explanation.accepted)
    yield "did not come through it:" if explanation.refused else "nothing was kept back"
    yield from (f"  {line}" for line in reason_lines(explanation.refused))


def spot(value: str, dimension: int) -> str:
    """Return a dimension of a tensor as text."""
    return f"{value} dim {dimension}"
