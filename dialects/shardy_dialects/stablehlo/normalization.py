"""Batch normalization: the feature dimension is that of all the vectors, too.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Dialect, Pure, Unpartitioned
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape


def batch_norm_rule(op: Op) -> OpShardingRule:
    """Pass all dimensions of the large tensors through, the feature dimension also to and from the vectors.

    Statistics over a sharded batch need an all-reduce inside the op, which no factor kind expresses, as the large
    result keeps the dimension.
    """
    shape = tensor_shape(op.operands[0])
    feature = attribute(op, "feature_index", 0)
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        vector_dim = 0 if dim == feature else None
        operands, results = (
            [dim if _is_large(index, value, shape) else vector_dim for index, value in enumerate(values)]
            for values in (op.operands, op.results)
        )
        builder.add_factor(operands, results, size)
    return builder.build()


def _is_large(index: int, value: object, shape: tuple[int, ...]) -> bool:
    # Where the large tensors are vectors themselves, both ways of counting agree.
    return index == 0 or len(tensor_shape(value)) == len(shape)


def register(dialect: Dialect) -> None:
    """Define the batch normalizations."""
    traits = (Pure, Unpartitioned)
    define(dialect, "stablehlo.batch_norm_inference", batch_norm_rule, traits=traits)
    for name in ("stablehlo.batch_norm_training", "stablehlo.batch_norm_grad"):
        define(dialect, name, batch_norm_rule, extended=True, traits=traits)
