"""Propagation edges: the moves of axes between the tensors of an op, step by step.

Mirrors source_sharding.cc::createPropagationEdges.
"""

from __future__ import annotations

from attrs import field

from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Program
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.op_attributes import (
    AxisToPropagationDetails,
    EdgeValueRef,
    PropagationEdges,
    PropagationOneStep,
)
from shardy_py.transforms.debug_info.function_attributes import update_function
from shardy_py.values import define

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
