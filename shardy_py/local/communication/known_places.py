"""Reads and writes at known places of sharded tensors: the owner of a place computes what is there.

A rule knows that a device needs what others have, and not which few rows: so what is read or written is gathered. Where
constants tell the place, a read is a slice, and what is written goes in pieces to the devices that have its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import ClassVar

from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.local import LocalEmitter, LocalOps
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.choices import meshes_by_name
from shardy_py.local.communication.exchange_in_place import (
    bytes_to,
    bytes_to_users,
    collected_bytes,
    exchanged_bytes,
    reshard_result,
    unmoved,
)
from shardy_py.local.communication.explicit_steps import with_extended_rules, write_collectives
from shardy_py.local.communication.moves import reshard_bytes, shard_bytes
from shardy_py.local.communication.report import CommunicationChange, record_change
from shardy_py.local.communication.rewriting import reshard
from shardy_py.local.communication.routes import STEPS, Routes
from shardy_py.local.local_ops import find_local_ops
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import NoFields, frozen


class UseKnownPlacesPass(NoFields):
    """Read slices at places that constants tell, and bring what is written to the devices that have its place."""

    name: ClassVar[str] = "use-known-places"

    def run(self, program: Program, context: PassContext) -> None:
        """Change the reads and writes of all functions."""
        semantics = with_extended_rules(context.semantics)
        ops, routes = find_local_ops(program, semantics), Routes(program, semantics)
        meshes = meshes_by_name(program)
        changed = False
        for op in list(all_ops(program)):
            change = None if op.name in STEPS else _change(op, ops, routes, semantics, meshes)
            if isinstance(change, CommunicationChange):
                record_change(context, change)
            changed |= bool(change)
        if changed:
            write_collectives(program, semantics, context)


def _change(
    op: Op, ops: LocalOps, routes: Routes, semantics: OpSemantics, meshes: Mapping[str, Mesh]
) -> CommunicationChange | bool:
    """Change an op, and return whether that was done; where it sends less by itself what that is."""
    if len(op.results) != 1 or len(op.operands) < 2 or op.parent is None or static_shape(op.results[0].type) is None:
        return False
    numbers = [number for number in range(1, len(op.operands)) if _is_written(op, number, ops)]
    if not numbers:
        return _is_partly_read(op) and _read(op, ops, routes, semantics, meshes)
    held = routes.sharding(unmoved(op.operands[0]))
    mesh = None if held is None else meshes.get(str(held.mesh))
    if held is None or mesh is None or held.unreduced_axes:
        return False
    moves = [move for number in numbers if (move := _bring(op, number, held.closed_like(), mesh, ops, routes))]
    before = _sent(op, numbers, routes, mesh)
    after = sum(move.sent for move in moves) + bytes_to_users(op, held, routes, mesh)
    if not moves or after >= before:
        return False
    change = CommunicationChange(f"{op.name} writes where its place is", before, after, op.location)
    _write_at_owner(op, moves, held.closed_like(), routes)
    _replace(op, ops, routes)
    return change


def _is_written(op: Op, number: int, ops: LocalOps) -> bool:
    """Return whether an operand is put into a place that is known along some dimension."""
    shape, full = static_shape(op.operands[number].type), static_shape(op.results[0].type)
    if not shape or full is None or len(shape) != len(full):
        return False
    return any(ops.placed(op, number, dim, 2) is not None for dim in range(len(full)) if shape[dim] < full[dim])


def _is_partly_read(op: Op) -> bool:
    """Return whether the result is a smaller tensor than the first operand, of the same rank."""
    shape, full = static_shape(op.results[0].type), static_shape(op.operands[0].type)
    return full is not None and shape is not None and len(shape) == len(full) and shape != full


@frozen(eq=False)
class _Move:
    """An operand that is written, on its way to the devices that have its place.

    Args:
        number: The number of the operand.
        value: The value that is brought there.
        sharding: The sharding with which it arrives.
        sent: The bytes that a device sends.
    """

    number: int
    value: Value
    sharding: TensorSharding
    sent: float


def _bring(op: Op, number: int, held: TensorSharding, mesh: Mesh, ops: LocalOps, routes: Routes) -> _Move | None:
    """Return the move that shards a written operand like the tensor that it is written into; None where none does.

    Args:
        op: The op.
        number: The number of the operand.
        held: The sharding of what it goes into.
        mesh: The mesh.
        ops: The ops of the dialect.
        routes: The routes of values.
    """
    value = unmoved(op.operands[number])
    source = routes.sharding(value)
    shape, full = op.operands[number].shape, op.results[0].shape
    if source is None or source.mesh != held.mesh or source.unreduced_axes:
        return None
    dims, pieces, is_sharded = [], 0.0, False
    for dim, item in enumerate(held.dim_shardings):
        parts = item.sharded_size(mesh)
        is_part = shape[dim] < full[dim]
        elements = ops.placed(op, number, dim, parts) if parts > 1 and is_part else 0.0
        if elements is not None:
            is_sharded |= parts > 1 and is_part and bool(source.of_dimension(dim).axes)
            pieces += elements / -(-shape[dim] // parts)
        dims.append(DimensionSharding() if elements is None else item)
    if not is_sharded:
        # Each device has what it writes.
        return None
    target = TensorSharding(held.mesh, tuple(dims))
    brought = reshard_bytes(value.type, source, target, mesh)
    if brought is None:
        return None
    return _Move(number, value, target, brought + pieces * shard_bytes(value.type, target, mesh))


def _sent(op: Op, numbers: Sequence[int], routes: Routes, mesh: Mesh) -> float:
    """Return the bytes that a device sends now for what is written, and for what that goes into."""
    ends = [(unmoved(op.operands[number]), routes.sharding(op.operands[number])) for number in (0, *numbers)]
    return sum(bytes_to(routes, value, end, mesh) for value, end in ends)


def _write_at_owner(op: Op, moves: Sequence[_Move], held: TensorSharding, routes: Routes) -> None:
    """Let an op write where the devices are that have the place, and reshard its result for its users."""
    op.set_operand(0, unmoved(op.operands[0]))
    for move in moves:
        source = routes.sharding(move.value)
        arrived = move.value
        if source is not None and op.parent is not None and not move.sharding.is_equivalent(source):
            arrived = reshard(op.program, move.value, move.sharding, op.parent, op)
        op.set_operand(move.number, arrived)
    reshard_result(op, held, routes)


def _read(
    op: Op, ops: LocalOps, routes: Routes, semantics: OpSemantics, meshes: Mapping[str, Mesh]
) -> CommunicationChange | bool:
    """Put a slice in the place of a read, where it sends no more; return whether that was done, or what that saves."""
    held = routes.sharding(unmoved(op.operands[0]))
    mesh = None if held is None else meshes.get(str(held.mesh))
    block = Block(op.program)
    result = ops.at_known_place(LocalEmitter(op.program, block, count(1).__next__), op)
    if held is None or mesh is None or held.unreduced_axes or result is None or result.defining_op is None:
        return False
    closed = TensorSharding(held.mesh, held.dim_shardings).closed_like()
    before, after = (_read_bytes(op, item, closed, mesh, ops, routes, semantics) for item in (op, result.defining_op))
    if after > before:
        return False
    change = CommunicationChange(f"{op.name} is a slice", before, after, op.location)
    _put_in_place(op, block, result, routes)
    return change if after < before else True


def _read_bytes(
    op: Op,
    form: Op,
    held: TensorSharding,
    mesh: Mesh,
    ops: LocalOps,
    routes: Routes,
    semantics: OpSemantics,
) -> float:
    """Return the bytes that a device sends for a read, and to bring its result to its users.

    Args:
        op: The read.
        form: The read, or an equivalent slice.
        held: The sharding of what is read.
        mesh: The mesh.
        ops: The ops of the dialect.
        routes: The routes of values.
        semantics: What is known about ops.
    """
    current, rule = routes.sharding(op.results[0]), semantics.get_sharding_rule(form)
    operand = routes.sharding(op.operands[0])
    gathered = bytes_to(routes, unmoved(op.operands[0]), operand, mesh)
    collected = collected_bytes(form, held, operand, current, mesh, ops)
    current_bytes = min(gathered, collected) + bytes_to_users(op, current, routes, mesh)
    exchanged = None if rule is None else exchanged_bytes(form, held, mesh, rule, ops)
    return (
        current_bytes if exchanged is None else min(current_bytes, exchanged + bytes_to_users(op, held, routes, mesh))
    )


def _replace(op: Op, ops: LocalOps, routes: Routes) -> None:
    """Put simpler ops in the place of an op at a known place, where there are some."""
    block = Block(op.program)
    result = ops.at_known_place(LocalEmitter(op.program, block, count(1).__next__), op)
    if result is not None:
        _put_in_place(op, block, result, routes)


def _put_in_place(op: Op, block: Block, result: Value, routes: Routes) -> None:
    """Put the ops of a block, sharded as the result of an op, in its place."""
    sharding, parent = routes.sharding(op.results[0]), op.parent
    for item in list(block.ops):
        block.remove(item)
        if parent is not None:
            parent.insert_before(op, item)
        for value in item.results:
            if sharding is not None and len(value.shape) == sharding.rank:
                op.program.shardings[value.id] = sharding
    op.results[0].replace_all_uses_with(result)
    op.erase()
