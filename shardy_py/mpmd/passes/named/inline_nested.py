"""Names inside of named computations."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.op_names import FUNCTION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.fragments import origins_of
from shardy_py.mpmd.dialect.op_names import BROADCAST, NAMED_COMPUTATION, NAMED_TENSOR, REDUCE, TOPOLOGY
from shardy_py.mpmd.passes.assignments import MeshAssignment, parse_assignments
from shardy_py.mpmd.passes.region_ops import inline_region
from shardy_py.values import frozen


@frozen
class InlineNestedUserExposedOpsPass:
    """Inline named computations, and drop named tensors, broadcasts and reduces, inside of named computations.

    Args:
        assignment: The meshes and stages of names, which nested ones must share.
    """

    name: ClassVar[str] = "mpmd-inline-nested-user-exposed-ops"

    assignment: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> None:
        """Inline the innermost names first.

        Raises:
            UnsupportedError: a nested name is assigned to another mesh or stage; all are named.
        """
        assignments = parse_assignments(self.assignment)
        problems: list[Diagnostic] = []
        names = (NAMED_COMPUTATION, NAMED_TENSOR, BROADCAST, REDUCE)
        nested = [(op, _outermost_named(op)) for op in ops_named(program, *names)]
        for op, parent in reversed(nested):
            if parent is None:
                continue
            problem = _conflict(op, parent, assignments)
            if problem is not None:
                problems.append(problem)
            elif op.name == NAMED_COMPUTATION:
                inline_region(op)
            elif len(op.operands) == 1:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
        if problems:
            raise UnsupportedError(*reversed(problems))


def _outermost_named(op: Op) -> Op | None:
    """Return the outermost named computation around an op."""
    outermost, parent = None, op.parent_op
    while parent is not None and parent.name != FUNCTION:
        outermost = parent if parent.name == NAMED_COMPUTATION else outermost
        parent = parent.parent_op
    if outermost is None or parent is None or TOPOLOGY not in parent.attributes:
        return None
    return outermost


def _conflict(op: Op, parent: Op, assignments: dict[str, MeshAssignment]) -> Diagnostic | None:
    """Return what is wrong with an op inside of a named computation, or None."""
    outer = origins_of(parent)[0].name
    outer_assignment = assignments.get(outer)
    if outer_assignment is None:
        message = (
            f"Parent NamedComputation '{outer}' is not assigned to a mesh in the user-defined name-to-mesh assignment."
        )
        return Diagnostic("unassigned-name", message, op.location, hint=f"assign {outer} to a mesh")
    if op.name not in (NAMED_COMPUTATION, NAMED_TENSOR):
        return None
    is_computation = op.name == NAMED_COMPUTATION
    inner = origins_of(op)[0].name if is_computation else op.attributes["name"]
    assignment = assignments.get(inner)
    if assignment is None:
        return None
    has_same_stage = not is_computation or assignment.stage == outer_assignment.stage
    if assignment.mesh == outer_assignment.mesh and has_same_stage:
        return None
    kind, aspect = ("NamedComputation", "mesh or stage") if is_computation else ("NamedTensor", "mesh")
    message = f"{kind} '{inner}' is nested in a NamedComputation '{outer}' which has a different {aspect} assignment."
    hint = f"{inner} is on {assignment}, {outer} on {outer_assignment}"
    return Diagnostic("nested-name", message, op.location, hint=hint)
