"""Explanation of an op, by names."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.explain.answer.moves import AxisMove, move_line
from shardy_py.explain.answer.refusals import Refusal, refusal_lines
from shardy_py.trace.places import at_place
from shardy_py.values import frozen


@frozen
class FactorExplanation:
    """One factor of an op's rule.

    Args:
        factor: Its symbol.
        size: Its size.
        kind: Its kind (see `FactorKind`).
        is_blocked: Whether nothing propagates along it.
        places: The dimensions that have it.
        directions: The directions in which it propagates, level by level.
        combiner: The combiner of partial results along it (see `Combiner`), ``not`` where they cannot be combined; ""
            for a factor that is not reduced.
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
    """The moves through an op and its refusals.

    Args:
        op: The op with its results.
        location: Its place in the source, or "".
        rule: Its rule.
        tensors: Its operands and results.
        factors: The factors of its rule.
        accepted: The moves through it, in order.
        refused: The refusals of its last visit, and those in which a factor lost to another in earlier ones.
        no_rule: Why nothing propagates through it, "" for an op with a rule.
        attributes: The attributes of an op without a rule, shortened.
    """

    op: str
    location: str
    rule: str
    tensors: tuple[TensorOfOp, ...]
    factors: tuple[FactorExplanation, ...]
    accepted: tuple[AxisMove, ...]
    refused: tuple[Refusal, ...]
    no_rule: str = ""
    attributes: str = ""

    def __str__(self) -> str:
        return "\n".join(_op_lines(self))


def _op_lines(explanation: OpExplanation) -> Iterator[str]:
    yield f"{explanation.op}{at_place(explanation.location)}"
    if explanation.attributes:
        yield f"  attributes: {explanation.attributes}"
    yield f"  rule: {explanation.rule or 'none'}"
    for tensor in explanation.tensors:
        yield f"  {tensor.position} {tensor.value}: {tensor.sharding or 'no sharding'}"
    yield ""
    if explanation.no_rule:
        yield f"nothing propagates through it: {explanation.no_rule}"
        return
    for factor in explanation.factors:
        blocked = ", propagation blocked" if factor.is_blocked else ""
        kind = factor.kind + (f" by {factor.combiner}" if factor.combiner not in ("", "add") else "")
        yield f"factor {factor.factor} of size {factor.size}, {kind}{blocked}: {', '.join(factor.places)}"
        yield f"  directions by level: {', '.join(factor.directions)}"
    yield ""
    yield "came through it:" if explanation.accepted else "nothing came through it"
    yield from (f"  {move_line(move)}" for move in explanation.accepted)
    yield "did not come through it:" if explanation.refused else "nothing was kept back"
    yield from (f"  {line}" for line in refusal_lines(explanation.refused))
