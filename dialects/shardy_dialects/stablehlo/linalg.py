"""Decompositions and transforms of the last dimensions; all dimensions before are batch dimensions.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import parse_enum
from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure, Unpartitioned
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape


def cholesky_rule(op: Op) -> OpShardingRule:
    """Replicate the matrices, pass the batch through."""
    shape = tensor_shape(op.operands[0])
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(
        shape, kind=lambda dim: FactorKind.PASS_THROUGH if dim < len(shape) - 2 else FactorKind.NEED_REPLICATION
    )
    return builder.build()


def triangular_solve_rule(op: Op) -> OpShardingRule:
    """Replicate the matrices of ``op(a) @ x = b`` or ``x @ op(a) = b``, pass the batch through."""
    a_shape, b_shape = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    rows, columns = len(a_shape) - 2, len(a_shape) - 1
    is_left = bool(attribute(op, "left_side", False))
    is_transposed = parse_enum(str(attribute(op, "transpose_a", "NO_TRANSPOSE"))) in ("TRANSPOSE", "ADJOINT")
    free, contracting = (rows, columns) if is_left != is_transposed else (columns, rows)
    # The dimension of b that a has, too, and the one that only b and x have.
    shared, own = (rows, columns) if is_left else (columns, rows)
    builder = OpShardingRuleBuilder.for_op(op).add_pointwise(a_shape[:-2])

    def add_free_factor() -> None:
        builder.add_factor([free, shared], [None], a_shape[free], kind=FactorKind.NEED_REPLICATION)

    def add_own_factor() -> None:
        builder.add_factor([None, own], [own], b_shape[own], kind=FactorKind.NEED_REPLICATION)

    for add in (add_free_factor, add_own_factor) if is_left else (add_own_factor, add_free_factor):
        add()
    builder.add_factor([contracting, None], [shared], a_shape[contracting], kind=FactorKind.NEED_REPLICATION)
    return builder.build()


def fft_rule(op: Op) -> OpShardingRule:
    """Replicate the transformed dimensions; nothing propagates along the last one if the result is truncated."""
    in_shape, out_shape = tensor_shape(op.operands[0]), tensor_shape(op.results[0])
    num_batch_dims = len(in_shape) - len(attribute(op, "fft_length", ()))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(in_shape):
        if dim < num_batch_dims:
            builder.add_factor_all(dim, size)
        else:
            is_blocked = dim == len(in_shape) - 1 and in_shape[-1] != out_shape[-1]
            builder.add_factor_all(dim, size, kind=FactorKind.NEED_REPLICATION, blocked=is_blocked)
    return builder.build()


def register(dialect: Dialect) -> None:
    """Define the linear algebra ops."""
    define(dialect, "stablehlo.cholesky", cholesky_rule)
    define(dialect, "stablehlo.triangular_solve", triangular_solve_rule)
    define(dialect, "stablehlo.fft", fft_rule, traits=(Pure, Unpartitioned))
