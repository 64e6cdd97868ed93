"""Slices of padded tensors taken from what was padded: these keep the boundaries of its shards.

A padded tensor has other shards than its source, so that all its elements move, and move back when it is sliced.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.local import LocalOps
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.exchange_in_place import bytes_to, bytes_to_users, exchanged_bytes
from shardy_py.local.communication.explicit_steps import with_extended_rules, write_collectives
from shardy_py.local.communication.rewriting import reshard
from shardy_py.local.communication.routes import STEPS, Routes, source_of
from shardy_py.local.local_ops import find_local_ops
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields


class ComposeSlicesPass(NoFields):
    """Replace an op on what another one makes by one op, where the dialect has such an op and tensors are sharded."""

    name: ClassVar[str] = "compose-slices"

    def run(self, program: Program, context: PassContext) -> None:
        """Compose ops in all functions."""
        semantics = context.semantics
        ops, routes = find_local_ops(program, semantics), Routes(program, semantics)
        extended = with_extended_rules(semantics)
        composed = [op for op in all_ops(program) if op.name not in STEPS and _compose(op, ops, routes, extended)]
        if composed:
            write_collectives(program, semantics, context)


def _compose(op: Op, ops: LocalOps, routes: Routes, semantics: OpSemantics) -> bool:
    """Replace an op and its producer by one op for all users; return whether that was done."""
    if len(op.operands) != 1 or len(op.results) != 1 or op.parent is None:
        return False
    producer = source_of(op.operands[0]).defining_op
    if producer is None or producer.parent is not op.parent or not producer.operands:
        return False
    sharding = routes.sharding(producer.operands[0])
    if sharding is None or sharding.is_fully_replicated or sharding.unreduced_axes:
        return False
    if _is_whole_along(op, sharding, routes):
        return False
    composed = ops.composed(op, producer)
    if composed is None:
        return False
    name, attributes = composed
    composed_op = Op(op.program, name, producer.operands, [op.results[0].type], dict(attributes))
    op.parent.insert_before(op, composed_op)
    value = composed_op.results[0]
    op.program.shardings[value.id] = sharding
    if _sends_more(composed_op, op, producer, sharding, ops, routes, semantics):
        composed_op.erase()
        return False
    for route in routes.of(op.results[0]):
        target = route.sharding or TensorSharding.fully_closed(sharding.mesh, sharding.rank)
        arrived = value
        if not target.is_equivalent(sharding) and route.user.parent is not None:
            arrived = reshard(op.program, value, target, route.user.parent, route.user)
        route.user.set_operand(route.number, arrived)
    return True


def _sends_more(
    composed_op: Op,
    op: Op,
    producer: Op,
    sharding: TensorSharding,
    ops: LocalOps,
    routes: Routes,
    semantics: OpSemantics,
) -> bool:
    """Return whether a composed op sends more than the two it replaces, with the collectives between and after them."""
    mesh = op.program.meshes.get(str(sharding.mesh))
    ends = [(item, routes.sharding(item.operands[0])) for item in (op, producer)]
    if mesh is None or any(end is None for _, end in ends):
        return False
    after = _op_bytes(composed_op, sharding, mesh, ops, semantics)
    sent_bytes = [_op_bytes(item, end, mesh, ops, semantics) for item, end in ends if end is not None]
    known_bytes = [item for item in sent_bytes if item is not None]
    if after is None or len(known_bytes) < len(sent_bytes):
        return False
    between = bytes_to(routes, producer.results[0], routes.sharding(op.operands[0]), mesh)
    behind = bytes_to_users(op, routes.sharding(op.results[0]), routes, mesh)
    return after + bytes_to_users(op, sharding, routes, mesh) > sum(known_bytes) + between + behind


def _op_bytes(op: Op, sharding: TensorSharding, mesh: Mesh, ops: LocalOps, semantics: OpSemantics) -> float | None:
    rule = semantics.get_sharding_rule(op)
    if rule is None:
        return None
    closed = TensorSharding(sharding.mesh, sharding.dim_shardings).closed_like()
    return exchanged_bytes(op, closed, mesh, rule, ops, is_moving=False)


def _is_whole_along(op: Op, sharding: TensorSharding, routes: Routes) -> bool:
    """Return whether a tensor is whole along all dimensions whose size an op changes, or whose elements it moves."""
    meshes = op.program.meshes
    mesh = meshes.get(str(sharding.mesh))
    before, after = static_shape(op.operands[0].type), static_shape(op.results[0].type)
    if mesh is None or before is None or after is None or len(before) != len(after) or sharding.rank != len(after):
        return True
    cut = [dim for dim, item in enumerate(sharding.dim_shardings) if item.sharded_size(mesh) > 1]
    return all(before[dim] == after[dim] for dim in cut)
