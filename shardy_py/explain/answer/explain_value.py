"""Explanation of the sharding of a tensor."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.explain.answer.describe import Describer
from shardy_py.explain.answer.explanations import DimensionExplanation, ValueExplanation
from shardy_py.explain.answer.moves import MissingAxis, Refusal
from shardy_py.ir.graph.op_names import CALL, FUNCTION
from shardy_py.ir.graph.program import Value
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.arguments import shown
from shardy_py.trace.labels import Labels
from shardy_py.trace.reasons import MEANINGS, Reason
from shardy_py.trace.trace import Trace
from shardy_py.values import frozen


@frozen(eq=False)
class Subject:
    """A tensor to explain.

    Args:
        slot: Its slot.
        name: Its name; that of the slot may be another one, as several values may share one.
        value: The value in the result, or the one that carried the sharding where the result has it no more.
        final: Its sharding in the result, where it has one.
    """

    slot: int
    name: str
    value: Value
    final: TensorSharding | None = None


def explain_value(trace: Trace, labels: Labels, subject: Subject, dim: int | None = None) -> ValueExplanation:
    """Explain the sharding of a tensor.

    Args:
        trace: The trace.
        labels: The names to use.
        subject: The tensor.
        dim: The dimension; None for all.

    Raises:
        OptionError: the tensor has no such dimension.
    """
    slot = subject.slot
    sharding = trace.history.last(slot)
    carrier = trace.problem.slot_values[slot]
    rank = getattr(carrier.type, "rank", 0)
    if dim is not None and not 0 <= dim < rank:
        hint = f"its dimensions are 0 to {rank - 1}" if rank else "it is a scalar"
        raise OptionError(Diagnostic("unknown-dimension", f"{subject.name} has no dimension {shown(dim)}", hint=hint))
    mesh = _mesh(trace, sharding)
    describer = Describer(trace, labels)
    dimensions = [describer.dimension(slot, index, mesh) for index in (range(rank) if dim is None else (dim,))]
    if labels.value(slot) != subject.name:
        dimensions = [_of_edge(dimension, subject.name, labels.value(slot)) for dimension in dimensions]
    maker = labels.maker(slot)
    other = labels.other_maker(slot) if maker is None else None
    op = labels.of_step[maker] if maker is not None else None if other is None else other.label
    return ValueExplanation(
        subject.name,
        str(carrier.type),
        str(op or ""),
        op.location if op else "",
        "" if sharding is None else str(sharding),
        "" if subject.final is None else str(subject.final),
        "" if labels.value(slot) == subject.name else labels.value(slot),
        tuple(_with_final(dimensions, subject, sharding, mesh)),
        labels.printed(slot) if subject.name == labels.value(slot) != labels.printed(slot) else "",
    )


def _of_edge(explanation: DimensionExplanation, name: str, carrier: str) -> DimensionExplanation:
    """Add to what a tensor has not got that it takes its sharding from another one of its data-flow edge."""
    missing = []
    for axis in explanation.missing:
        text = f"{name} takes the sharding of the data-flow edge of {carrier}, which has not got it"
        owner = Refusal(Reason.EDGE_OWNER.value, axis.axis, text, name, explanation.dimension)
        missing.append(evolve(axis, reasons=(owner, *axis.reasons)))
    return evolve(explanation, missing=tuple(missing))


def _mesh(trace: Trace, sharding: TensorSharding | None) -> Mesh:
    """Return the mesh of a sharding; without one, the first that has axes."""
    if sharding is not None:
        return trace.problem.table.mesh_of(sharding)
    return next((mesh for mesh in trace.problem.table.meshes.values() if mesh.axes), Mesh(()))


def _with_final(
    dimensions: Iterable[DimensionExplanation], subject: Subject, sharding: TensorSharding | None, mesh: Mesh
) -> Iterable[DimensionExplanation]:
    """Add the axes that the passes after propagation removed."""
    final = subject.final
    for dimension in dimensions:
        if final is None or sharding is None or final.rank != sharding.rank:
            yield dimension
            continue
        pairs = sharding.of_dimension(dimension.dimension).axes, final.of_dimension(dimension.dimension).axes
        removed = [
            MissingAxis(str(axis), (_removal(subject, dimension, str(axis)),))
            for axis in axis_set_difference(*pairs, mesh)
        ]
        yield evolve(dimension, missing=(*removed, *dimension.missing))


def _removal(subject: Subject, dimension: DimensionExplanation, axis: str) -> Refusal:
    """Return the refusal of an axis that a pass after propagation removed."""
    is_boundary = subject.value.owning_op.name in (FUNCTION, CALL)
    code = Reason.BOUNDARY if is_boundary else Reason.RESHARD
    detail = f"size {dimension.size}, {dimension.sharding} after propagation"
    return Refusal(code.value, axis, f"{MEANINGS[code]} ({detail})", subject.name, dimension.dimension, detail=detail)
