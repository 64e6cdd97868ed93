"""Convolutions: groups, batch, windows, kernel window and features each have factors of their own.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.attributes import ConvolutionDims, integer_of, parse_convolution_dims, text_of
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import LibraryCall, Pure, RuleOptions
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the convolutions."""
    # The reference cuts windows short where their sizes do not divide the input's.
    definitions.define(
        "stablehlo.convolution",
        of_options=convolution_rule,
        any_sizes=True,
        traits=(Pure, LibraryCall),
        local=FACETS.local("localize_convolution"),
        cost=FACETS.cost("ConvolutionCost"),
    )
    definitions.define(
        "stablehlo.dynamic_conv",
        of_options=convolution_rule,
        extended=True,
        any_sizes=True,
        traits=(Pure, LibraryCall),
    )


def convolution_rule(op: Op, options: RuleOptions) -> OpShardingRule:
    """Give the factors in the order batch groups, batch, space, feature groups, input and output features.

    Conservative rules leave the spatial dimensions out, as sharding them needs a halo exchange.
    """
    dims = parse_convolution_dims(text_of(op, "dimension_numbers"))
    batch_groups = integer_of(op, "batch_group_count", 1)
    feature_groups = integer_of(op, "feature_group_count", 1)
    rhs, out = tensor_shape(op.operands[1]), tensor_shape(op.results[0])
    builder = OpShardingRuleBuilder.for_op(op)
    if batch_groups > 1:
        builder.add_factor({0: dims.input_batch, 1: dims.kernel_output_feature}, {0: dims.output_feature}, batch_groups)
    builder.add_factor({0: dims.input_batch}, {0: dims.output_batch}, out[dims.output_batch])
    if not options.conservative:
        _add_spatial_factors(builder, op, dims)
    if feature_groups > 1:
        builder.add_factor(
            {0: dims.input_feature, 1: dims.kernel_output_feature}, {0: dims.output_feature}, feature_groups
        )
    builder.add_factor(
        {0: dims.input_feature, 1: dims.kernel_input_feature},
        {},
        rhs[dims.kernel_input_feature],
        kind=FactorKind.REDUCTION,
    )
    out_features = out[dims.output_feature] // (batch_groups * feature_groups)
    if out_features > 1:
        builder.add_factor({1: dims.kernel_output_feature}, {0: dims.output_feature}, out_features)
    return builder.build()


_Spatial = tuple[int, dict[int, int], dict[int, int], FactorKind]
"""The size of a factor, its dimensions of operands and of the result, and its kind."""


def _add_spatial_factors(builder: OpShardingRuleBuilder, op: Op, dims: ConvolutionDims) -> None:
    """Split each spatial dimension of the input into windows and kernel window, the larger of the two first."""
    lhs, rhs, out = (tensor_shape(value) for value in (op.operands[0], op.operands[1], op.results[0]))
    spatial = zip(dims.input_spatial, dims.kernel_spatial, dims.output_spatial, strict=True)
    for lhs_dim, rhs_dim, out_dim in spatial:
        windows: _Spatial = (out[out_dim], {0: lhs_dim}, {0: out_dim}, FactorKind.PERMUTATION)
        window: _Spatial = (rhs[rhs_dim], {0: lhs_dim, 1: rhs_dim}, {}, FactorKind.REDUCTION)
        rest = lhs[lhs_dim]
        for size, operand_dims, result_dims, kind in (
            (windows, window) if windows[0] >= window[0] else (window, windows)
        ):
            factor = min(rest, size)
            if factor > 1:
                builder.add_factor(operand_dims, result_dims, factor, kind=kind)
                rest //= factor
