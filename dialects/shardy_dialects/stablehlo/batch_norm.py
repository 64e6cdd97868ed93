"""Batch normalization: the feature dimension is that of all the vectors, too.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from shardy_dialects.stablehlo.attributes import integer_of
from shardy_dialects.stablehlo.definitions import Definitions
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import CostOpInterface, OpShapes, OpWork, Pure, Unpartitioned
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape


def register(definitions: Definitions) -> None:
    """Define the batch normalizations, with the work that the CPU compiler of jaxlib 0.10.2 counts."""
    traits = (Pure, Unpartitioned)
    definitions.define(
        "stablehlo.batch_norm_inference",
        batch_norm_rule,
        traits=traits,
        local=local_by_types,
        cost=BatchNormCost(2.0, 4.0, {}),
    )
    definitions.define(
        "stablehlo.batch_norm_training",
        batch_norm_rule,
        extended=True,
        traits=traits,
        cost=BatchNormCost(7.0, 5.0, {0: 3.0}),
    )
    definitions.define(
        "stablehlo.batch_norm_grad",
        batch_norm_rule,
        extended=True,
        traits=traits,
        cost=BatchNormCost(11.0, 4.0, {0: 3.0, 4: 2.0}),
    )


def batch_norm_rule(op: Op) -> OpShardingRule:
    """Pass all dimensions of the large tensors through, the feature dimension also to and from the vectors.

    Statistics over a sharded batch need an all-reduce inside the op, which no factor kind expresses, as the large
    result keeps the dimension.
    """
    shape = tensor_shape(op.operands[0])
    feature = integer_of(op, "feature_index")
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


class BatchNormCost(CostOpInterface):
    """A batch normalization, which XLA expands, as in batchnorm_expander.cc, after its simplifications.

    Args:
        per_element: The operations per element of the large tensor.
        per_feature: Those per feature; beside them there is the inverse of a root.
        reads: Operand number to how often it is read, of those that are read more than once.
    """

    def __init__(self, per_element: float, per_feature: float, reads: Mapping[int, float]) -> None:
        self.per_element, self.per_feature, self.reads = per_element, per_feature, reads

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return the work of the expansion."""
        elements, features = prod(shapes.operands[0]), prod(shapes.operands[1])
        flops = self.per_element * elements + self.per_feature * features
        return OpWork(flops, float(features), {number: count * elements for number, count in self.reads.items()})
