"""Ops that act outside of the program: one device runs them, on whole operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import CannotLocalize, LocalEmitter, Shard
from shardy_py.ir.interfaces.ops import IsTerminator, OpSemantics, Pure, RecursiveMemoryEffects
from shardy_py.sharding.shard_positions import devices_of

_TRAITS = (IsTerminator, Pure, RecursiveMemoryEffects)


def has_side_effects_only(op: Op, semantics: OpSemantics) -> bool:
    """Return whether an op has side effects and no results, so that one device must run it.

    An op in the body of a manual computation runs on each device, even with side effects.
    """
    if op.results or op.regions or op.parent is None or op.parent.last is op or op.name.startswith("sdy."):
        return False
    return not any(semantics.has_trait(op, trait) for trait in _TRAITS) and not _is_manual(op)


def run_once(shard: Shard, gather_whole: Callable[[Shard, int], Value]) -> bool:
    """Run an op without results on the first device only, and return whether this can be done.

    Args:
        shard: The op on one device.
        gather_whole: Returns an operand of a shard, gathered.
    """
    devices = [device for mesh in shard.meshes.values() if mesh.axes for device in devices_of(mesh)]
    if shard.is_resolved or len(devices) < 2:
        return False
    last = shard.emit.block.last
    gathered_operands = [gather_whole(shard, number) for number in range(len(shard.operands))]

    def run(emit: LocalEmitter) -> Sequence[Value]:
        emit.op_like(shard.op, gathered_operands, ())
        return ()

    try:
        shard.ops.on_device(shard.emit, min(devices), (), run)
    except CannotLocalize:
        shard.emit.erase_after(last)
        return False
    return True


def _is_manual(op: Op) -> bool:
    parent = op.parent_op
    while parent is not None and parent.name != MANUAL_COMPUTATION:
        parent = parent.parent_op
    return parent is not None
