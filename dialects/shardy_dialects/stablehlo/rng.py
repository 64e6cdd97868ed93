"""Random number generators: the state is replicated, the numbers may be sharded in any way.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardy_dialects.stablehlo.attributes import text_of
from shardy_dialects.stablehlo.definitions import Definitions
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.local import Shard, no_local_form
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork, Pure, Unpartitioned
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape

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
    definitions.define("stablehlo.rng", rng_rule, extended=True, traits=(), local=localize_random, cost=RandomCost())


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
