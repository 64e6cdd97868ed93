"""Ops whose local form exchanges elements by itself, run where their operands are.

A rule lets no axis pass along a dimension whose elements move, such as that of a concatenation: operands are gathered,
or sharded along another dimension, and the result is brought back. Where an op moves only the elements that change
their device, the operands stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import ClassVar

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.local import LocalOps, LocalSemantics
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.choices import meshes_by_name
from shardy_py.local.communication.explicit_steps import with_extended_rules, write_collectives
from shardy_py.local.communication.moves import reshard_bytes, shard_bytes
from shardy_py.local.communication.report import CommunicationChange, record_change
from shardy_py.local.communication.rewriting import reshard
from shardy_py.local.communication.routes import STEPS, SUMS, Routes
from shardy_py.local.local_ops import find_local_ops
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields


class ExchangeInPlacePass(NoFields):
    """Let an op that moves elements by itself take its operands as they are sharded, where less is sent so."""

    name: ClassVar[str] = "exchange-in-place"

    def run(self, program: Program, context: PassContext) -> None:
        """Change the ops of all functions."""
        semantics = with_extended_rules(context.semantics)
        ops, routes = find_local_ops(program, semantics), Routes(program, semantics)
        meshes, partial = meshes_by_name(program), context.partial_values
        changed = False
        for op in list(all_ops(program)):
            if op.name in STEPS or any(value.id in partial for value in (*op.operands, *op.results)):
                continue
            change = _exchange(op, ops, routes, semantics, meshes)
            if change is not None:
                record_change(context, change)
                changed = True
        if changed:
            write_collectives(program, semantics, context)


def _exchange(
    op: Op, ops: LocalOps, routes: Routes, semantics: OpSemantics, meshes: Mapping[str, Mesh]
) -> CommunicationChange | None:
    """Change an op, and return what was done, or None."""
    sources = [unmoved(value) for value in op.operands]
    if len(op.results) != 1 or op.parent is None or all(map(is_, sources, op.operands)):
        return None
    held = routes.sharding(sources[0])
    mesh = None if held is None else meshes.get(str(held.mesh))
    if held is None or mesh is None or held.unreduced_axes or not isinstance(semantics, LocalSemantics):
        return None
    rule = semantics.get_sharding_rule(op)
    if rule is None or semantics.get_local(op) is None:
        return None
    held = TensorSharding(held.mesh, held.dim_shardings).closed_like()
    exchanged = exchanged_bytes(op, held, mesh, rule, ops)
    if exchanged is None:
        return None
    numbers = _alike(rule, held)
    if all(sources[number] is op.operands[number] for number in numbers):
        return None
    others = [routes.sharding(value) for number, value in enumerate(op.operands) if number not in numbers]
    other_axes = {axis.name for other in others if other is not None for axis in other.axes()}
    if any(axis.name in other_axes for axis in held.axes()):
        return None
    brought = sum(bytes_to(routes, sources[number], held, mesh) for number in numbers)
    operand_bytes = sum(
        bytes_to(routes, sources[number], routes.sharding(op.operands[number]), mesh) for number in numbers
    )
    ends = routes.sharding(op.operands[0]), routes.sharding(op.results[0])
    if len(numbers) == 1:
        operand_bytes = min(operand_bytes, collected_bytes(op, held, *ends, mesh, ops))
    current = routes.sharding(op.results[0])
    before = operand_bytes + bytes_to_users(op, current, routes, mesh)
    after = brought + exchanged + bytes_to_users(op, held, routes, mesh)
    if after >= before:
        return None
    for number in numbers:
        op.set_operand(number, _resharded(sources[number], held, routes, op))
    reshard_result(op, held, routes)
    return CommunicationChange(f"{op.name} moves only what changes its device", before, after, op.location)


def exchanged_bytes(
    op: Op, held: TensorSharding, mesh: Mesh, rule: OpShardingRule, ops: LocalOps, *, is_moving: bool = True
) -> float | None:
    """Return the bytes that an op sends by itself where its operands and its result are sharded alike.

    None where it cannot run so.

    Args:
        op: The op.
        held: The sharding.
        mesh: The mesh.
        rule: The rule of the op.
        ops: The ops of the dialect.
        is_moving: Whether it counts only where elements move along a dimension.
    """
    shape, before = static_shape(op.results[0].type), static_shape(op.operands[0].type)
    if shape is None or before is None or len(shape) != held.rank or len(before) != held.rank:
        return None
    total, moves = 0.0, False
    for dim, item in enumerate(held.dim_shardings):
        parts = item.sharded_size(mesh)
        if parts == 1 or _passes(rule, dim, held.rank):
            continue
        elements = ops.exchanged(op, dim, parts)
        if elements is None or not shape[dim]:
            return None
        moves = True
        total += elements / -(-shape[dim] // parts) * shard_bytes(op.results[0].type, held, mesh)
    return total if moves or not is_moving else None


def _alike(rule: OpShardingRule, held: TensorSharding) -> list[int]:
    """Return the operands whose dimensions are those of the first one wherever that is sharded."""
    first, *others = rule.operand_mappings
    cut = [dim for dim, item in enumerate(held.dim_shardings) if item.axes]
    alike = [
        number
        for number, mapping in enumerate(others, 1)
        if len(mapping) == len(first) and all(mapping[dim] == first[dim] for dim in cut)
    ]
    return [0, *alike]


def collected_bytes(
    op: Op,
    held: TensorSharding,
    operand: TensorSharding | None,
    result: TensorSharding | None,
    mesh: Mesh,
    ops: LocalOps,
) -> float:
    """Return the bytes that a device sends where the local form of an op gets whole results from parts by itself.

    Args:
        op: The op.
        held: The sharding of the parts.
        operand: The sharding that the first operand has after it was gathered.
        result: The sharding of the result.
        mesh: The mesh.
        ops: The ops of the dialect.
    """
    dims = () if operand is None else enumerate(operand.dim_shardings)
    if any(item.axes and item.axes != held.of_dimension(dim).axes for dim, item in dims):
        # It is not gathered only: it has other parts.
        return float("inf")
    factors = []
    for dim, item in enumerate(held.dim_shardings):
        parts = item.sharded_size(mesh)
        if parts > 1 and (result is None or not result.of_dimension(dim).axes):
            factors.append(ops.collected(op, dim, parts))
    known_factors = [factor for factor in factors if factor is not None]
    if not known_factors or len(known_factors) < len(factors):
        return float("inf")
    return sum(known_factors) * shard_bytes(op.results[0].type, result, mesh)


def _passes(rule: OpShardingRule, dim: int, rank: int) -> bool:
    """Return whether a dimension is the same in all tensors of a rank, each part of which an op computes by itself."""
    factors = {mapping[dim] for mapping in rule.mappings if len(mapping) == rank}
    return len(factors) == 1 and all(rule.is_pass_through(factor) for dim in factors for factor in dim)


def unmoved(value: Value) -> Value:
    """Return what collectives that combine nothing moved."""
    producer = value.defining_op
    while producer is not None and producer.name in STEPS - SUMS:
        value = producer.operands[0]
        producer = value.defining_op
    return value


def bytes_to(routes: Routes, value: Value, target: TensorSharding | None, mesh: Mesh) -> float:
    """Return the bytes that a device sends to give a value another sharding; None is that of a whole tensor."""
    source = routes.sharding(value)
    if source is None:
        return 0.0
    end = target or TensorSharding.fully_closed(source.mesh, source.rank)
    sent = reshard_bytes(value.type, source, end, mesh)
    return float("inf") if sent is None else sent


def bytes_to_users(op: Op, held: TensorSharding | None, routes: Routes, mesh: Mesh) -> float:
    """Return the bytes that a device sends to bring the result of an op, under a sharding, to its users."""
    if held is None:
        return 0.0
    replicated = TensorSharding.fully_closed(held.mesh, held.rank)
    targets = {route.sharding or replicated: None for route in routes.of(op.results[0])}
    sent = [reshard_bytes(op.results[0].type, held, item, mesh) for item in targets]
    return sum(float("inf") if item is None else item for item in sent)


def reshard_result(op: Op, held: TensorSharding, routes: Routes) -> None:
    """Change the sharding of the result of an op, and reshard it to the previous one for its users."""
    program, result, current = op.program, op.results[0], routes.sharding(op.results[0])
    after = op.next
    if held.is_equivalent(current) or op.parent is None or after is None:
        return
    uses: Sequence[tuple[Op, int]] = list(result.uses)
    program.shardings[result.id] = held
    replicated = TensorSharding.fully_closed(held.mesh, held.rank)
    moved = reshard(program, result, current or replicated, op.parent, after)
    for user, number in uses:
        user.set_operand(number, moved)


def _resharded(value: Value, target: TensorSharding, routes: Routes, op: Op) -> Value:
    source = routes.sharding(value)
    if op.parent is None or (source is not None and target.is_equivalent(source)):
        return value
    return reshard(op.program, value, target, op.parent, op)
