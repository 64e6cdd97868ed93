"""Explanations of a tensor, of an op, and of an axis that one more visit would bring, by names."""

from __future__ import annotations

from collections.abc import Iterator

from shardy_py.explain.answer.moves import AxisMove, Chain, MissingAxis, Refusal, chain_lines, move_line, refusal_lines
from shardy_py.sharding.rule import factor_symbol
from shardy_py.trace.labels import Labels, at_place
from shardy_py.trace.reasons import Reason
from shardy_py.trace.trace import Trace
from shardy_py.values import frozen


@frozen
class DimensionExplanation:
    """The sharding of a dimension, with the chains of its axes and the refusals of the others.

    Args:
        dimension: The number of the dimension.
        size: Its size; -1 where it is unknown.
        sharding: Its sharding after propagation.
        present: The chains of its axes.
        missing: The other axes of the mesh, with refusals.
    """

    dimension: int
    size: int
    sharding: str
    present: tuple[Chain, ...]
    missing: tuple[MissingAxis, ...]


@frozen
class ValueExplanation:
    """The sharding of a tensor, explained dimension by dimension.

    Args:
        value: Its name.
        type: Its type.
        op: The op that makes it, or "".
        location: The place of that op in the source, or "".
        sharding: Its sharding after propagation, or "" for none.
        final: Its sharding in the result, or "" where the result does not have it.
        carrier: The tensor that carries its sharding, where that is another one of the same data-flow edge, or "".
        dimensions: The dimensions that were asked for.
        printed: Its name in the text, where that is another one, or "".
    """

    value: str
    type: str
    op: str
    location: str
    sharding: str
    final: str
    carrier: str
    dimensions: tuple[DimensionExplanation, ...]
    printed: str = ""

    def __str__(self) -> str:
        return "\n".join(_value_lines(self))


def _value_lines(explanation: ValueExplanation) -> Iterator[str]:
    producer = f", made by {explanation.op}" if explanation.op else ""
    place = at_place(explanation.location)
    printed = f" = {explanation.printed}" if explanation.printed else ""
    yield f"{explanation.value}{printed}: {explanation.type}{producer}{place}"
    if explanation.carrier:
        yield f"  its sharding is that of the data-flow edge of {explanation.carrier}"
    yield f"  sharding: {explanation.sharding or 'none'}"
    if explanation.final and _placed(explanation.final) != _placed(explanation.sharding):
        yield f"  in the result: {explanation.final}"
    for dimension in explanation.dimensions:
        yield ""
        yield from _dimension_lines(dimension)


def _placed(sharding: str) -> str:
    """Return a sharding without the marks for open dimensions."""
    return sharding.replace(", ?", "").replace("?", "")


def _dimension_lines(dimension: DimensionExplanation) -> Iterator[str]:
    size = f" of size {dimension.size}" if dimension.size >= 0 else ""
    yield f"dimension {dimension.dimension}{size}: {dimension.sharding or 'no sharding'}"
    for chain in dimension.present:
        yield f"  {chain.axis} comes from {chain.origin.annotation}, dimension {chain.origin.dimension}"
        yield from (f"    {line}" for line in chain_lines(chain))
    for missing in dimension.missing:
        yield f"  {missing.axis} is not there"
        yield from (f"    {line}" for line in refusal_lines(missing.reasons))


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


@frozen
class NotSettled:
    """An axis that one more visit of an op would bring; the reference's order ends before it.

    Args:
        op: The op, with its results.
        location: Its place in the source, or "".
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
        ends = f"{self.value} dim {self.dimension} <- {self.source} dim {self.source_dimension} {self.axis}"
        return f"{ends}: through {self.op}{at_place(self.location)}, factor {self.factor}"


def find_unsettled(trace: Trace, labels: Labels) -> Iterator[NotSettled]:
    """Yield the axes that one more visit of an op would bring, in the order of the ops.

    Args:
        trace: The trace.
        labels: The names to use.
    """
    for step in trace.final_visits.unsettled:
        slots, index = trace.slots_and_index(step)
        label = labels.of_step[step]
        if index is None:
            continue
        for _, refusal in trace.final_refusals(step):
            target = index.slot_dim(slots, refusal.target, refusal.factor)
            source = index.slot_dim(slots, refusal.source, refusal.factor)
            if refusal.reason is Reason.NOT_REVISITED and target is not None and source is not None:
                ends = labels.value(target[0]), target[1], str(refusal.axis), labels.value(source[0]), source[1]
                yield NotSettled(str(label), label.location, *ends, factor_symbol(refusal.factor))
