"""Slices, updates of slices, padding and concatenation.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph.program import Op, Value
from shardy_py.plugins import (
    Concatenation,
    ConstantFoldable,
    Dialect,
    DynamicSlice,
    ForwardPassThrough,
    Pure,
    RuleOptions,
)
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape

SLICE = "stablehlo.slice"


def static_window_rule(op: Op, options: RuleOptions) -> OpShardingRule:
    """Give the rule of a slice or a pad: dimensions of another size need a permutation, conservatively they block.

    The offsets are known, so that it is known how to shift the data of a sharded dimension.
    """
    builder = OpShardingRuleBuilder(
        [tensor_shape(value) for value in op.operands], [tensor_shape(value) for value in op.results]
    )
    return _mismatch(builder, op, FactorKind.PERMUTATION, blocked=options.conservative).build()


def dynamic_slice_rule(op: Op) -> OpShardingRule:
    """Pass unsliced dimensions through; nothing propagates along sliced ones."""
    return _mismatch(OpShardingRuleBuilder.for_op(op), op, FactorKind.NEED_REPLICATION, blocked=True).build()


def dynamic_update_slice_rule(op: Op) -> OpShardingRule:
    """Keep operand and result sharded along updated dimensions; the update is replicated there.

    Every device writes the part of the update that falls into its shard. With constant indices it is known which
    part that is, and the update may be sharded, too.
    """
    indices = op.operands[2:]
    no_dims: list[int | None] = [None] * len(indices)
    kind = FactorKind.PASS_THROUGH if _has_constant_indices(op) else FactorKind.NEED_REPLICATION
    builder = OpShardingRuleBuilder.for_op(op)
    update_shape = tensor_shape(op.operands[1])
    for dim, (size, update_size) in enumerate(zip(tensor_shape(op.operands[0]), update_shape, strict=True)):
        if size == update_size:
            builder.add_factor_all(dim, size)
        else:
            builder.add_factor([dim, None, *no_dims], [dim], size)
            builder.add_factor([None, dim, *no_dims], [None], update_size, kind=kind)
    return builder.build()


def concatenate_rule(op: Op, options: RuleOptions) -> OpShardingRule:
    """Pass all dimensions through but the concatenated one, which conservatively has no factor at all."""
    dimension = attribute(op, "dimension", 0)
    kind = FactorKind.PERMUTATION if _joins_slices(op) else FactorKind.NEED_REPLICATION
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(
        tensor_shape(op.results[0]),
        where=lambda dim: not options.conservative or dim != dimension,
        kind=lambda dim: kind if dim == dimension else FactorKind.PASS_THROUGH,
    )
    return builder.build()


def set_dimension_size_rule(op: Op) -> OpShardingRule:
    """Keep all dimensions whole: no collective takes a result one of whose sizes is known when it runs only."""
    builder = OpShardingRuleBuilder.for_op(op)
    return builder.add_pointwise(tensor_shape(op.operands[0]), kind=lambda dim: FactorKind.NEED_REPLICATION).build()


def get_dimension_size_rule(op: Op) -> OpShardingRule:
    """Let the operand be sharded in any way: only its type matters."""
    builder = OpShardingRuleBuilder.for_op(op)
    return builder.add_pointwise(tensor_shape(op.operands[0])).build()


def _mismatch(builder: OpShardingRuleBuilder, op: Op, kind: FactorKind, *, blocked: bool) -> OpShardingRuleBuilder:
    """Add one factor per dimension of the first operand; the other operands have no part."""
    others: list[int | None] = [None] * (len(op.operands) - 1)
    for dim, (size, out_size) in enumerate(zip(tensor_shape(op.operands[0]), tensor_shape(op.results[0]), strict=True)):
        if size == out_size:
            builder.add_factor([dim, *others], [dim], size)
        else:
            builder.add_factor([dim, *others], [dim], size, kind=kind, blocked=blocked)
    return builder


def _joins_slices(op: Op) -> bool:
    """Return whether a concatenation only rearranges: all operands are slices, or of one tensor and some a slice."""
    are_slices = [_is_slice(operand) for operand in op.operands]
    if all(are_slices):
        return True
    sources = {_before_slice(operand).id for operand in op.operands}
    return any(are_slices) and len(sources) == 1


def _is_slice(value: Value) -> bool:
    return value.defining_op is not None and value.defining_op.name == SLICE


def _before_slice(value: Value) -> Value:
    producer = value.defining_op
    return producer.operands[0] if producer is not None and producer.name == SLICE else value


def _has_constant_indices(op: Op) -> bool:
    """Return whether it is known where a dynamic update slice writes."""
    return all(map(_is_constant, op.operands[2:]))


def _is_constant(value: Value) -> bool:
    return value.defining_op is not None and value.defining_op.name.endswith(".constant")


def register(dialect: Dialect) -> None:
    """Define the slicing ops."""
    define(dialect, SLICE, of_options=static_window_rule, traits=(Pure, ConstantFoldable))
    define(dialect, "stablehlo.pad", of_options=static_window_rule)
    define(dialect, "stablehlo.dynamic_pad", of_options=static_window_rule, extended=True)
    define(dialect, "stablehlo.dynamic_slice", dynamic_slice_rule, traits=(Pure, ForwardPassThrough, DynamicSlice))
    define(dialect, "stablehlo.real_dynamic_slice", dynamic_slice_rule, extended=True)
    define(
        dialect,
        "stablehlo.dynamic_update_slice",
        dynamic_update_slice_rule,
        traits=(Pure, ForwardPassThrough),
        contextual=_has_constant_indices,
    )
    define(
        dialect,
        "stablehlo.concatenate",
        of_options=concatenate_rule,
        traits=[Concatenation, Pure],
        contextual=_joins_slices,
    )
    define(dialect, "stablehlo.set_dimension_size", set_dimension_size_rule, extended=True)
    define(dialect, "stablehlo.get_dimension_size", get_dimension_size_rule, extended=True)
