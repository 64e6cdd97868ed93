"""The order of the fragments of each mesh.

Mirrors mpmd/transforms/optimize/scheduler.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import (
    call_counter_of,
    is_user_fragment,
    mesh_of,
    mpmd_functions,
    single_transpose_count,
    split_kind,
    stage_of,
)
from shardy_py.mpmd.dialect.types import Topology, require_topology
from shardy_py.mpmd.schedules.predicates import Predicate, SchedulingUnit, find_predicate
from shardy_py.values import frozen


@frozen
class PipelineSchedulerPass:
    """Order the scheduling units of each mesh as a schedule says, and all other ops around them.

    Args:
        must_happen_before: The name of the schedule.
    """

    name: ClassVar[str] = "mpmd-pipeline-scheduler"

    must_happen_before: str = "1F1B"

    def run(self, program: Program, context: PassContext) -> None:
        """Order the blocks of all functions.

        Raises:
            OptionError: there is no such schedule.
        """
        predicate = find_predicate(self.must_happen_before)
        for function in mpmd_functions(program):
            block = block_of(function)
            pairs, refused = controls(block, require_topology(function), predicate)
            context.warnings.extend(order_block(block, pairs, self.must_happen_before))
            if refused:
                context.warnings.append(_contradiction(self.must_happen_before, refused))


def _contradiction(schedule: str, refused: list[tuple[Op, Op]]) -> Diagnostic:
    """Return the warning for pairs of fragments that a schedule orders against what it asks elsewhere."""
    first, second = refused[0]
    message = (
        f"the schedule {schedule} contradicts itself or the data for {len(refused)} pairs of fragments, first of mesh "
        f"{mesh_of(first)}: microbatch {call_counter_of(first)} before {call_counter_of(second)}"
    )
    hint = "choose another schedule, or more microbatches"
    return Diagnostic("schedule-cycle", message, first.location, first.name, hint)


def unit_of(op: Op, topology: Topology) -> SchedulingUnit | None:
    """Return the scheduling unit that an op is, or None."""
    if not is_user_fragment(op):
        return None
    counter, count, mesh = call_counter_of(op), single_transpose_count(op), mesh_of(op)
    meshes = topology.device_meshes
    if counter is None or count not in (0, 1) or mesh not in meshes:
        return None
    return SchedulingUnit(count == 0, counter, stage_of(op), split_kind(op), meshes.index(mesh), mesh)


def controls(block: Block, topology: Topology, predicate: Predicate) -> tuple[list[tuple[Op, Op]], list[tuple[Op, Op]]]:
    """Return the pairs of units of which the first must come first, where nothing says so already.

    As in the reference, units are visited in order, and each pair counts as a dependence from then on.

    Returns:
        The pairs, and those that the schedule asks for against earlier pairs or the data.
    """
    dependences = Ancestors(block)
    by_mesh: dict[str, list[tuple[Op, SchedulingUnit]]] = {}
    units = [(op, unit) for op in block.ops if (unit := unit_of(op, topology)) is not None]
    for op, unit in units:
        by_mesh.setdefault(unit.mesh_name, []).append((op, unit))
    count = len(topology.device_meshes)
    pairs, refused = [], []
    for op, unit in units:
        for other, other_unit in by_mesh[unit.mesh_name]:
            if op is other or not predicate(unit, other_unit, count) or dependences.depends(other, op):
                continue
            if dependences.depends(op, other):
                refused.append((op, other))
            else:
                dependences.add(other, op)
                pairs.append((op, other))
    return pairs, refused


class Ancestors:
    """The ops of a block that each op depends on, as sets of bits."""

    def __init__(self, block: Block) -> None:
        self._numbers: dict[int, int] = {}
        self._sets: dict[int, int] = {}
        for number, op in enumerate(block.ops):
            self._numbers[op.id] = number
            bits = 0
            for inner in op.walk() if op.regions else (op,):
                for value in inner.operands:
                    producer = value.defining_op
                    if producer is not None and producer.id in self._sets:
                        bits |= self._sets[producer.id] | (1 << self._numbers[producer.id])
            self._sets[op.id] = bits

    def add(self, op: Op, producer: Op) -> None:
        """Let an op, and all that depend on it, depend on another one and on all that this depends on."""
        bit = 1 << self._numbers[op.id]
        bits = self._sets[producer.id] | 1 << self._numbers[producer.id]
        for id_, known in self._sets.items():
            if id_ == op.id or known & bit:
                self._sets[id_] = known | bits

    def depends(self, op: Op, producer: Op) -> bool:
        """Return whether an op needs another one, directly or through others."""
        return bool(self._sets[op.id] >> self._numbers[producer.id] & 1)


def order_block(block: Block, pairs: Iterable[tuple[Op, Op]], schedule: str) -> list[Diagnostic]:
    """Sort the ops of a block so that each comes after what it uses and after what must come before it.

    As MLIR sorts: the ops that are not ordered yet are visited in order, again and again, and each whose
    operands are ordered is taken. Where the schedule asks for a cycle, the first fragment in it comes without waiting.

    Args:
        block: The block.
        pairs: Ops of which the first must come before the second.
        schedule: The name of the schedule, for warnings.

    Returns:
        A warning for each fragment that the schedule would let wait for itself.
    """
    before: dict[int, list[Op]] = {}
    for first, second in pairs:
        before.setdefault(second.id, []).append(first)
    terminator = block.terminator
    waiting = [op for op in block.ops if op is not terminator]
    data = {op.id: {item.id for item in _producers(op, block)} for op in waiting}
    needed = {op.id: data[op.id] | {item.id for item in before.get(op.id, ())} for op in waiting}
    done: set[int] = set()
    ordered: list[Op] = []
    warnings = []
    while waiting:
        left = []
        for op in waiting:
            if needed[op.id] <= done:
                done.add(op.id)
                ordered.append(op)
            else:
                left.append(op)
        if len(left) == len(waiting):
            op = next(item for item in waiting if data[item.id] <= done)
            needed[op.id] = data[op.id]
            message = f"the schedule {schedule} lets a fragment wait for itself; it comes where the program has it"
            hint = "choose another schedule, or more microbatches"
            warnings.append(Diagnostic("schedule-cycle", message, op.location, op.name, hint))
        waiting = left
    anchor: Op | None = None
    for op in ordered:
        block.remove(op)
        anchor = block.insert_after(anchor, op)
    return warnings


def _producers(op: Op, block: Block) -> list[Op]:
    result = []
    for inner in op.walk() if op.regions else (op,):
        for value in inner.operands:
            producer = value.defining_op
            if producer is not None and producer.parent is block:
                result.append(producer)
    return result
