"""Propagation edges: the moves of axes between the tensors of an op, step by step.

Mirrors source_sharding.cc::createSourceMap and source_sharding.cc::createPropagationEdges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field

from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Program
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import is_prefix
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import (
    AxisToPropagationDetails,
    EdgeValueRef,
    PropagationEdges,
    PropagationOneStep,
)
from shardy_py.sharding.projection import Axes, TensorFactorShardings
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.transforms.debug_info.origins import update_function
from shardy_py.values import define, frozen


@frozen
class NewAxis:
    """An axis that came onto a tensor of a step.

    Args:
        axis: The axis.
        target: The position of the tensor among operands, then results.
        source: The position of the tensor it came from.
    """

    axis: AxisRef
    target: int
    source: int


def find_new_axes(
    rule: OpShardingRule, mesh: Mesh, old: Sequence[TensorFactorShardings], new: Sequence[TensorFactorShardings]
) -> Iterator[NewAxis]:
    """Yield every axis that is on a tensor after a step and was not before, tensor by tensor.

    Args:
        rule: The rule of the step.
        mesh: The mesh.
        old: The factor shardings of operands, then results, before.
        new: Those after.
    """
    mappings = (*rule.operand_mappings, *rule.result_mappings)
    for target, mapping in enumerate(mappings):
        sources: dict[AxisRef, int] = {}
        for factors in mapping:
            _find_in_dim(factors, mesh, old, new, target, sources)
        for axis, source in sources.items():
            yield NewAxis(axis, target, source)


def _find_in_dim(
    factors: Sequence[int],
    mesh: Mesh,
    old: Sequence[TensorFactorShardings],
    new: Sequence[TensorFactorShardings],
    target: int,
    sources: dict[AxisRef, int],
) -> None:
    """Add the new axes of one dimension; the parts of an axis on successive factors count as one."""
    previous: AxisRef | None = None
    for factor in factors:
        if factor not in old[target].factors:
            # A factor minor to overflow axes takes no part.
            return
        before, after = old[target].factors[factor].axes, new[target].factors[factor].axes
        if before == after:
            continue
        last = after[-1]
        if previous is not None and previous.can_merge(last):
            sources.pop(previous, None)
            last = previous.merge(last, mesh)
        previous = after[-1]
        source = _find_source(after, factor, old)
        if source is None:
            continue
        for axis in _added(before, (*after[:-1], last)):
            sources.setdefault(axis, source)


def _added(before: Axes, after: Axes) -> Iterator[AxisRef]:
    """Yield the axes behind those of before, and the last of those if it grew."""
    last = len(before) - 1
    if before and before[last] != after[last]:
        yield after[last]
    yield from after[len(before) :]


def _find_source(axes: Axes, factor: int, old: Sequence[TensorFactorShardings]) -> int | None:
    """Return the first tensor that had all the axes along the factor."""
    for position, tensor in enumerate(old):
        entry = tensor.factors.get(factor)
        if entry is not None and is_prefix(axes, entry.axes):
            return position
    return None


def edge_value_ref(position: int, num_operands: int) -> EdgeValueRef:
    """Return the name of a position among operands, then results."""
    if position < num_operands:
        return EdgeValueRef("operand", position)
    return EdgeValueRef("result", position - num_operands)


EDGES = "sdy.propagation_edges"


@define
class EdgeLog:
    """The edges of one op, each with the first step that used it."""

    first_step: dict[tuple[AxisRef, EdgeValueRef, EdgeValueRef], int] = field(factory=dict)

    def add(self, step: int, axis: AxisRef, source: EdgeValueRef, target: EdgeValueRef) -> None:
        """Record that an axis moved from a source to a target, unless an earlier step moved it."""
        self.first_step.setdefault((axis, source, target), step)

    def propagation_edges(self) -> PropagationEdges:
        """Return the attribute: by step, then axis, then source."""
        steps: dict[int, dict[tuple[AxisRef, EdgeValueRef], list[EdgeValueRef]]] = {}
        for (axis, source, target), step in self.first_step.items():
            steps.setdefault(step, {}).setdefault((axis, source), []).append(target)
        return PropagationEdges(
            tuple([PropagationOneStep(step, _entries(moves)) for step, moves in sorted(steps.items())])
        )


def _entries(moves: dict[tuple[AxisRef, EdgeValueRef], list[EdgeValueRef]]) -> tuple[AxisToPropagationDetails, ...]:
    ordered = sorted(moves, key=lambda move: (_axis_key(move[0]), _ref_key(move[1])))
    return tuple(
        [AxisToPropagationDetails(*move, targets=tuple(sorted(moves[move], key=_ref_key))) for move in ordered]
    )


def _ref_key(ref: EdgeValueRef) -> tuple[str, int]:
    return (ref.type, ref.index)


def _axis_key(axis: AxisRef) -> tuple[bytes, int, float]:
    """Return the key of the reference's order; a full axis comes after the sub-axes it starts with."""
    size = axis.sub_axis.size if axis.sub_axis else float("inf")
    return (axis.name.encode("utf-8", "surrogateescape"), axis.pre_size, size)


def next_step(program: Program) -> int:
    """Return the number after the largest step on the ops of a program."""
    largest = -1
    for op in program.walk():
        edges = op.attributes.get(EDGES)
        if isinstance(edges, PropagationEdges):
            largest = max([largest, *(step.step_index for step in edges.steps)])
    return largest + 1


def save_edges(program: Program, logs: dict[int, EdgeLog]) -> None:
    """Set the attributes of the ops that are still there.

    Args:
        program: The program.
        logs: Op id to edges. Those of a function go to its first result, whatever result they are about: the
            reference runs on one result at a time and always calls it the first.
    """
    for op in program.walk():
        log = logs.get(op.id)
        if log is None or not log.first_step:
            continue
        if op.name == FUNCTION:
            update_function(op, "res_attrs", {0: {EDGES: log.propagation_edges()}})
        else:
            op.attributes[EDGES] = log.propagation_edges()
