"""Reductions over windows, and their gradients.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shardy_dialects.stablehlo.attributes import dense_of, integers_of
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets, shape_of
from shardy_dialects.stablehlo.reduce import combined
from shardy_py.indexing import op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import RecursiveMemoryEffects, RuleOptions
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape

if TYPE_CHECKING:
    from shardy_dialects.stablehlo.definitions import Maps
    from shardy_py.plugins import ElementBuilder, Scalar

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the ops over windows."""
    definitions.define(
        "stablehlo.reduce_window",
        of_options=reduce_window_rule,
        traits=(RecursiveMemoryEffects,),
        maps=reduce_window_maps,
        body=reduce_window_body,
        local=FACETS.local("localize_reduce_window"),
        cost=FACETS.cost("ReduceWindowCost"),
    )
    definitions.define(
        "stablehlo.select_and_scatter",
        of_options=select_and_scatter_rule,
        traits=(RecursiveMemoryEffects,),
        body=FACETS.body("select_and_scatter_body"),
        local=FACETS.local("localize_select_and_scatter"),
        cost=FACETS.cost("SelectAndScatterCost"),
    )


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
    """Shard operand and result along windows and replicate the source, unless windows and elements are the same.

    The reference replicates it; extended rules shard it, too, and devices fetch what their windows lack.
    """
    is_pass_through = _window_predicate(op)
    source_shape = tensor_shape(op.operands[1])
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(tensor_shape(op.results[0])):
        if is_pass_through(dim):
            builder.add_factor_all(dim, size)
            continue
        if options.extended:
            dims = {0: dim, 1: dim}
            builder.add_factor(dims, {0: dim}, size, kind=FactorKind.PERMUTATION, blocked=options.conservative)
            continue
        builder.add_factor(
            {1: dim},
            {},
            source_shape[dim],
            kind=FactorKind.NEED_REPLICATION,
            blocked=options.conservative,
        )
        builder.add_factor({0: dim}, {0: dim}, size, kind=FactorKind.PERMUTATION, blocked=options.conservative)
    return builder.build()


def _window_predicate(op: Op) -> Callable[[int], bool]:
    """Return whether windows along a dimension are single elements in their order.

    They are with size 1, stride 1, no padding and no base dilation, which the reference does not look at.
    """
    sizes: Sequence[int] = integers_of(op, "window_dimensions")
    dilations: Sequence[int] = integers_of(op, "base_dilations")
    strides: Sequence[int] = integers_of(op, "window_strides")
    padding = padding_of(op)

    def is_pass_through(dim: int) -> bool:
        unpadded = not padding or (padding[2 * dim] == 0 and padding[2 * dim + 1] == 0)
        return unpadded and all(not of or of[dim] == 1 for of in (sizes, strides, dilations))

    return is_pass_through


def padding_of(op: Op) -> Sequence[int]:
    """Return the low and high padding of each dimension in a row, or () where there is none."""
    padding = dense_of(op, "padding")
    if padding is None:
        return ()
    values: Sequence[int] = padding.values
    # A splat may come with its one value only.
    return values if len(values) != 1 else tuple(values) * (2 * len(tensor_shape(op.operands[0])))


def reduce_window_maps(op: Op) -> Maps:
    """Read the elements in the window, and the initial values."""
    output, shape, count = shape_of(op.results[0]), shape_of(op.operands[0]), len(op.results)
    ones = (1,) * len(shape)
    padding = padding_of(op) or (0,) * (2 * len(shape))
    window = op_maps.SlidingWindow(
        size=tuple(integers_of(op, "window_dimensions") or ones),
        strides=tuple(integers_of(op, "window_strides") or ones),
        window_dilations=tuple(integers_of(op, "window_dilations") or ones),
        base_dilations=tuple(integers_of(op, "base_dilations") or ones),
        low=tuple(padding[::2]),
        high=tuple(padding[1::2]),
    )
    return [op_maps.reduce_window(output, shape, window)] * count + [op_maps.scalar(output)] * count


def reduce_window_body(b: ElementBuilder, op: Op) -> Sequence[Scalar]:
    """Combine the elements in the window with the initial values."""
    return combined(b, op, reduce_window_maps(op))
