"""Reductions over whole dimensions and over windows.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardy_dialects.stablehlo.computations import region_combiner, second_operands
from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, RecursiveMemoryEffects, Reduction, RuleOptions
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape
from shardy_py.sharding.rules import reduction


def reduce_rule(op: Op) -> OpShardingRule | None:
    """Reduce along the given dimensions of all inputs, pass the others through to all results."""
    return reduction(op, attribute(op, "dimensions", ()))


def reduce_window_rule(op: Op, options: RuleOptions) -> OpShardingRule:
    """Shard along the number of windows, which needs a halo exchange unless windows and elements are the same."""
    is_pass_through = _window_predicate(op)
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(
        tensor_shape(op.results[0]),
        kind=lambda dim: FactorKind.PASS_THROUGH if is_pass_through(dim) else FactorKind.PERMUTATION,
        blocked=lambda kind: options.conservative and kind is FactorKind.PERMUTATION,
    )
    return builder.build()


def select_and_scatter_rule(op: Op, options: RuleOptions) -> OpShardingRule:
    """Shard operand and result along windows and replicate the source, unless windows and elements are the same."""
    is_pass_through = _window_predicate(op)
    source_shape = tensor_shape(op.operands[1])
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(tensor_shape(op.results[0])):
        if is_pass_through(dim):
            builder.add_factor_all(dim, size)
            continue
        builder.add_factor(
            [None, dim, None],
            [None],
            source_shape[dim],
            kind=FactorKind.NEED_REPLICATION,
            blocked=options.conservative,
        )
        builder.add_factor([dim, None, None], [dim], size, kind=FactorKind.PERMUTATION, blocked=options.conservative)
    return builder.build()


def _window_predicate(op: Op) -> Callable[[int], bool]:
    """Return whether windows along a dimension are single elements in their order.

    They are with size 1, stride 1, no padding and no base dilation, which the reference does not look at.
    """
    sizes: Sequence[int] = attribute(op, "window_dimensions") or ()
    dilations: Sequence[int] = attribute(op, "base_dilations") or ()
    strides: Sequence[int] = attribute(op, "window_strides") or ()
    padding = padding_of(op)

    def is_pass_through(dim: int) -> bool:
        unpadded = not padding or (padding[2 * dim] == 0 and padding[2 * dim + 1] == 0)
        return unpadded and all(not of or of[dim] == 1 for of in (sizes, strides, dilations))

    return is_pass_through


def padding_of(op: Op) -> Sequence[int]:
    """Return the low and high padding of each dimension in a row, or () where there is none."""
    padding = attribute(op, "padding")
    if padding is None:
        return ()
    values: Sequence[int] = padding.values
    # A splat may come with its one value only.
    return values if len(values) != 1 else tuple(values) * (2 * len(tensor_shape(op.operands[0])))


def register(dialect: Dialect) -> None:
    """Define the reductions."""
    define(
        dialect,
        "stablehlo.reduce",
        reduce_rule,
        traits=(RecursiveMemoryEffects, Reduction),
        combiner=region_combiner,
        initial_of=second_operands,
    )
    define(dialect, "stablehlo.reduce_window", of_options=reduce_window_rule, traits=(RecursiveMemoryEffects,))
    define(
        dialect,
        "stablehlo.select_and_scatter",
        of_options=select_and_scatter_rule,
        traits=(RecursiveMemoryEffects,),
    )
