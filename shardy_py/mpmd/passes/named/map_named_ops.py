"""Named computations as fragments of their meshes."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Program, Region, Value
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.fragments import (
    COUNTERS,
    mpmd_functions,
    new_assign,
    new_fragment,
    new_unassign,
    number_of,
    origins_of,
    unsigned,
)
from shardy_py.mpmd.dialect.op_names import NAMED_COMPUTATION, NAMED_TENSOR
from shardy_py.mpmd.dialect.types import MeshTensor, require_topology
from shardy_py.mpmd.passes.assignments import MeshAssignment, check_meshes, parse_assignments
from shardy_py.values import frozen


@frozen
class MapNamedOpsToMpmdOpsPass:
    """Turn named computations into fragments, their operands into assigns and their results into unassigns.

    Args:
        assignment: The meshes, stages and memories of names.
    """

    name: ClassVar[str] = "mpmd-map-named-ops-to-mpmd-ops"

    assignment: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> None:
        """Map the names of all functions with a topology.

        Raises:
            UnsupportedError: a named computation is not assigned to a mesh; all are named.
            OptionError: an assignment is malformed, or names a mesh that is not in the topology.
        """
        assignments = parse_assignments(self.assignment)
        problems: list[Diagnostic] = []
        for function in mpmd_functions(program):
            names = {op: _name_of(op) for op in function.walk() if op.name in (NAMED_COMPUTATION, NAMED_TENSOR)}
            used = {name: assignments[name] for name in names.values() if name in assignments}
            check_meshes(used, require_topology(function))
            for op, name in names.items():
                if op.parent_op is None or op.parent_op.name == NAMED_COMPUTATION:
                    continue
                assignment = assignments.get(name)
                if op.name == NAMED_TENSOR:
                    _map_tensor(op, name, assignment)
                elif assignment is None:
                    problems.append(_unassigned(op, name))
                else:
                    if assignment.memory_kind:
                        message = f"the memory kind of the named computation {name!r} is ignored"
                        context.warnings.append(Diagnostic("ignored-memory-kind", message, op.location, op.name))
                    _map_computation(op, name, assignment)
        if problems:
            raise UnsupportedError(*problems)


def _name_of(op: Op) -> str:
    name: str = origins_of(op)[0].name if op.name == NAMED_COMPUTATION else op.attributes["name"]
    return name


def _unassigned(op: Op, name: str) -> Diagnostic:
    message = (
        f"Top-level NamedComputation '{name}' is not assigned to a mesh in the user-defined named-to-mesh assignment."
    )
    return Diagnostic("unassigned-name", message, op.location, op.name, hint=f"assign it: {name}@mesh")


def _map_tensor(op: Op, name: str, assignment: MeshAssignment | None) -> None:
    value = op.operands[0]
    if assignment is not None:
        assert op.parent is not None
        assign = op.parent.insert_before(op, new_assign(op.program, value, assignment.type_of(value.type), name))
        value = op.parent.insert_before(op, new_unassign(op.program, assign.results[0], name)).results[0]
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _map_computation(op: Op, name: str, assignment: MeshAssignment) -> None:
    program, parent = op.program, op.parent
    assert parent is not None
    assigned: dict[int, Value] = {}
    for value in op.operands:
        if value.id not in assigned:
            assign = new_assign(program, value, MeshTensor(assignment.mesh, value.type), name)  # type: ignore[arg-type]
            assigned[value.id] = parent.insert_before(op, assign).results[0]
    block = op.take_regions()[0].block
    op.add_region(Region())
    counters = {counter: number_of(op.attributes, counter) for counter in COUNTERS}
    fragment = new_fragment(
        program,
        assignment.mesh,
        [assigned[value.id] for value in op.operands],
        [MeshTensor(assignment.mesh, value.type).type for value in op.results],  # type: ignore[arg-type]
        origins=origins_of(op),
        stage=assignment.stage,
        attributes={counter: unsigned(number) for counter, number in counters.items() if number is not None},
        block=block,
    )
    parent.insert_before(op, fragment)
    for value, new in zip(op.results, fragment.results, strict=True):
        unassign = parent.insert_before(op, new_unassign(program, new, name))
        value.replace_all_uses_with(unassign.results[0])
    op.erase()
