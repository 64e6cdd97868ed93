"""Random number generators: the state is replicated, the numbers may be sharded in any way.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_dialects.stablehlo.attributes import text_of
from shardy_dialects.stablehlo.bodies import element_type
from shardy_dialects.stablehlo.definitions import Definitions
from shardy_dialects.stablehlo.local.ops import integers
from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.plugins import CostOpInterface, Nondeterministic, OpShapes, OpWork, Pure, Unpartitioned
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape
from shardy_py.sharding.shard_positions import replica_groups

BIT_GENERATOR = "stablehlo.rng_bit_generator"


def register(definitions: Definitions) -> None:
    """Define the generators."""
    definitions.define(
        BIT_GENERATOR,
        rng_bit_generator_rule,
        traits=(Pure, Unpartitioned),
        local=localize_random,
        cost=RandomBitsCost(),
    )
    definitions.define(
        "stablehlo.rng", rng_rule, extended=True, traits=(Nondeterministic,), local=localize_draw, cost=RandomCost()
    )


def rng_bit_generator_rule(op: Op) -> OpShardingRule:
    """Replicate the state on both sides, give the numbers factors of their own."""
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(tensor_shape(op.operands[0])):
        builder.add_factor({0: dim}, {0: dim}, size, kind=FactorKind.NEED_REPLICATION, blocked=True)
    for dim, size in enumerate(tensor_shape(op.results[1])):
        builder.add_factor({}, {1: dim}, size)
    return builder.build()


def rng_rule(op: Op) -> OpShardingRule:
    """Give the numbers factors of their own; the operands are bounds and a shape."""
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(tensor_shape(op.results[0])):
        builder.add_factor({}, {0: dim}, size)
    return builder.build()


def localize_random(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the numbers that are not sharded; each shard would have the same ones otherwise."""
    if any(map(shard.sharded_dims, (*shard.operand_shardings, *shard.result_shardings))):
        raise no_local_form("random numbers are made whole, so that they are those of one device")
    return shard.copy()


def localize_draw(op: Op, shard: Shard) -> Sequence[Value]:
    """Draw the numbers of the device's shard; devices with the same shard take those of the first of them.

    Each device has a generator of its own, so that copies of a shard would differ. All but one of them are masked, and
    the sum of all is the draw of that one, as spmd_partitioner.cc::HandleRng does it.
    """
    shape, type_ = shard.result_shape(), shard.result_type()
    emit, is_sharded = shard.emit, shape != static_shape(op.results[0].type)
    if shard.is_resolved and is_sharded:
        raise no_local_form("copies of a shard agree by communication, which counts as written already")
    sizes = shard.operands[2]
    if is_sharded:
        sizes = integers(emit, shape)
    draw = emit.op_like(op, [*shard.operands[:2], sizes], [type_]).result
    groups = _groups_of_copies(op, shard)
    return [_shared(shard, draw, groups) if groups else draw]


def _groups_of_copies(op: Op, shard: Shard) -> tuple[tuple[int, ...], ...]:
    """Return the groups of devices that hold the same shard; none where each device has another one."""
    (sharding,) = shard.result_shardings
    if sharding is None:
        meshes = [mesh for mesh in shard.meshes.values() if not mesh.is_maximal]
        mesh = max(meshes, key=lambda item: item.total_size, default=None)
    else:
        mesh = shard.mesh(sharding)
    if mesh is None:
        return ()
    used = [] if sharding is None else [axis for dim in sharding.dim_shardings for axis in dim.axes]
    used += [AxisRef(name) for name in _manual_names(op)]
    axes = axis_set_difference([AxisRef(axis.name) for axis in mesh.axes], used, mesh)
    return replica_groups(mesh, axes) if axes_size(axes, mesh) > 1 else ()


def _manual_names(op: Op) -> set[str]:
    """Return the names of the axes along which devices run a manual computation around an op."""
    names: set[str] = set()
    parent = op.parent_op
    while parent is not None:
        if parent.name == MANUAL_COMPUTATION:
            names.update(parent.attributes["manual_axes"].names)
        parent = parent.parent_op
    return names


def _shared(shard: Shard, value: Value, groups: tuple[tuple[int, ...], ...]) -> Value:
    """Return the value of the first device of each group on all devices of the group."""
    ops, emit, shape = shard.ops, shard.emit, value.shape
    dtype = element_type(value)
    zero = ops.scalar(emit, dtype, 0)
    if zero is None:
        raise no_local_form(f"{dtype} has no zero, with which the draws of other devices are masked")
    rows = shape or (1,)
    counts = [0] * sum(map(len, groups))
    for first, *_ in groups:
        counts[first] = rows[0]
    masked = ops.mask(emit, value if shape else ops.reshape(emit, value, rows), 0, ops.offset(emit, counts), zero)
    combiner = Combiner.OR if dtype == "i1" else Combiner.ADD
    total = ops.all_reduce(emit, masked, groups, combiner)
    return total if shape else ops.reshape(emit, total, ())


_PHILOX = 37.25
"""Operations on integers for each 32 random bits: ten rounds of Philox for four words (rng_bit_generator_expander.cc).
"""


_UNIFORM = "UNIFORM"


_UNIFORM_FLOPS = 3.0
"""A shift, a conversion and a product make a number of bits."""


class RandomBitsCost(CostOpInterface):
    """Random bits by counters."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the operations for the words of the last result."""
        type_ = op.results[-1].type
        words = 2 if isinstance(type_, TensorType) and type_.element_type.endswith("64") else 1
        return OpWork(_PHILOX * prod(shapes.results[-1]) * words)


class RandomCost(CostOpInterface):
    """Random numbers between two bounds, made of random bits (rng_expander.cc)."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork | None:
        """Return the operations for uniform numbers; None for others.

        Where all devices have the same numbers, one of them makes these, and all sum what they have.
        """
        if _UNIFORM not in text_of(op, "rng_distribution"):
            return None
        elements = prod(shapes.results[0])
        is_sent = shapes.results[0] == tensor_shape(op.results[0])
        return OpWork((_PHILOX + _UNIFORM_FLOPS + is_sent) * elements)
