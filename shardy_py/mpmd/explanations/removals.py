"""Assignments that would remove a transfer, each tried by a partition of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from shardy_py.errors import ShardyError
from shardy_py.ir.graph.op_names import RETURN
from shardy_py.ir.graph.program import Op
from shardy_py.mpmd.dialect.fragments import is_fragment, origins_of
from shardy_py.mpmd.dialect.types import require_mesh_tensor
from shardy_py.mpmd.explanations.observation import Observation
from shardy_py.mpmd.explanations.transfers import TransferExplanation, explain_transfers
from shardy_py.mpmd.partitioning import Partitioning
from shardy_py.mpmd.passes.assignments import MeshAssignment, parse_assignments
from shardy_py.support.texts import format_bytes
from shardy_py.values import frozen

CHEAPEST = "cheapest_transfers=True"


@frozen
class TransferRemoval:
    """A change that removes a transfer.

    Args:
        change: The change, such as ``"f" on m0``.
        transfers: The number of all transfers with it.
        transfers_before: The number of all transfers without it.
        sent_bytes: The bytes that each device sends in all transfers with it.
        sent_bytes_before: The bytes without it.
    """

    change: str
    transfers: int
    transfers_before: int
    sent_bytes: int
    sent_bytes_before: int

    def __str__(self) -> str:
        """Return the change with what it does to all transfers."""
        transfers = f"{self.transfers} instead of {self.transfers_before} transfers"
        after, before = format_bytes(self.sent_bytes), format_bytes(self.sent_bytes_before)
        return f"{self.change}: {transfers}, {after} instead of {before}"


def find_removals(before: Observation, number: int, *, limit: int) -> tuple[TransferRemoval, ...]:
    """Return the changes that remove a transfer, those that leave the fewest bytes first."""
    explained, ops = explain_transfers(before)[number]
    sent_before = _total(before)
    removals = []
    for change, partitioning in list(_changes(before, explained, ops).items())[:limit]:
        try:
            after = Observation.of(partitioning)
        except ShardyError:
            # Such a program does not exist: the schedule or another name contradicts.
            continue
        if any(_is_same(explained, item) for item, _ in explain_transfers(after)):
            continue
        counts = len(after.transfers()), len(before.transfers())
        removals.append(TransferRemoval(change, *counts, _total(after), sent_before))
    return tuple(sorted(removals, key=lambda item: (item.sent_bytes, item.transfers, item.change)))


def _is_same(first: TransferExplanation, second: TransferExplanation) -> bool:
    """Return whether two explanations are of the transfer of one value between two meshes."""
    names = ("source", "target", "made_by")
    return all(getattr(first, name) == getattr(second, name) for name in names)


def _total(observation: Observation) -> int:
    return sum(map(observation.sent_bytes, observation.transfers()))


def _changes(before: Observation, explained: TransferExplanation, ops: Sequence[Op]) -> dict[str, Partitioning]:
    """Return changes of assignments that could remove a transfer, in words and as what to run, the nearest first."""
    partitioning = before.partitioning
    changes: dict[str, Partitioning] = {}
    if not partitioning.cheapest_transfers and partitioning.infer_transfers:
        changes[CHEAPEST] = evolve(partitioning, cheapest_transfers=True)
    ends = explained.source.mesh, explained.target.mesh
    # An op without a name may be where it is for the sake of another transfer between the two meshes.
    for transfers in (ops, [op for op in before.transfers() if _ends(op) == ends]):
        for change, changed in _changes_of(partitioning, transfers, *ends):
            changes.setdefault(change, changed)
    return changes


def _ends(op: Op) -> tuple[str, str]:
    return require_mesh_tensor(op.operands[0]).mesh, require_mesh_tensor(op.results[0]).mesh


def _changes_of(
    partitioning: Partitioning, ops: Sequence[Op], source: str, target: str
) -> Iterator[tuple[str, Partitioning]]:
    """Iterate over changes that move an end of some transfers to the mesh of the other end."""
    assignments = parse_assignments(partitioning.names)
    for name in _names(op for transfer in ops for op in transfer.results[0].users):
        yield from _moved(partitioning, assignments, name, source)
    for name in _names(op for transfer in ops if (op := transfer.operands[0].defining_op) is not None):
        yield from _moved(partitioning, assignments, name, target)
    arguments = {op.operands[0].index for op in ops if op.operands[0].is_block_argument}
    for number in sorted(arguments):
        inputs = _assigned(partitioning.inputs, number, target)
        yield f"argument {number} on {target}", evolve(partitioning, inputs=inputs)
    results = {number for op in ops for user, number in op.results[0].uses if user.name == RETURN}
    for number in sorted(results):
        outputs = _assigned(partitioning.outputs, number, source)
        yield f"result {number} on {source}", evolve(partitioning, outputs=outputs)


def _names(ops: Iterator[Op]) -> list[str]:
    return list(dict.fromkeys(origin.name for op in ops if is_fragment(op) for origin in origins_of(op)))


def _moved(
    partitioning: Partitioning, assignments: dict[str, MeshAssignment], name: str, mesh: str
) -> Iterator[tuple[str, Partitioning]]:
    old = assignments.get(name)
    if old is None or old.mesh == mesh:
        return
    items = {**assignments, name: evolve(old, mesh=mesh)}
    names = tuple(f"{key}@{value}" for key, value in items.items())
    yield f'"{name}" on {mesh}', evolve(partitioning, names=names)


def _assigned(items: tuple[str, ...], number: int, mesh: str) -> tuple[str, ...]:
    others = tuple(item for item in items if not item.startswith(f"{number}@"))
    return (*others, f"{number}@{mesh}")
