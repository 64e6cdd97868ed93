"""Fourier transforms of the last dimensions; all dimensions before are batch dimensions.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from math import floor, log2, prod

from shardy_dialects.stablehlo.attributes import integers_of
from shardy_dialects.stablehlo.definitions import Definitions
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import CostOpInterface, LibraryCall, OpShapes, OpWork, Pure, Unpartitioned
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape


def register(definitions: Definitions) -> None:
    """Define the transform."""
    definitions.define(
        "stablehlo.fft", fft_rule, traits=(Pure, Unpartitioned, LibraryCall), local=local_by_types, cost=FftCost()
    )


def fft_rule(op: Op) -> OpShardingRule:
    """Replicate the transformed dimensions; nothing propagates along the last one if the result is truncated."""
    in_shape, out_shape = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    num_batch_dims = len(in_shape) - len(integers_of(op, "fft_length"))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(in_shape):
        if dim < num_batch_dims:
            builder.add_factor_all(dim, size)
        else:
            is_blocked = dim == len(in_shape) - 1 and in_shape[-1] != out_shape[-1]
            builder.add_factor_all(dim, size, kind=FactorKind.NEED_REPLICATION, blocked=is_blocked)
    return builder.build()


class FftCost(CostOpInterface):
    """A Fourier transform."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return eight operations per element and level."""
        lengths = integers_of(op, "fft_length")
        levels = prod(floor(log2(size)) for size in lengths if size > 1)
        return OpWork(8.0 * prod(shapes.operands[0]) * levels)
