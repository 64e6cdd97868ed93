"""Sorting along one dimension, and the largest elements.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log2, prod

from shardy_dialects.stablehlo.attributes import integer_of
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import (
    CostOpInterface,
    LibraryCall,
    OpShapes,
    OpWork,
    Pure,
    RecursiveMemoryEffects,
    Sort,
    Unpartitioned,
)
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape

FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define sorts and the largest elements."""
    definitions.define(
        "stablehlo.sort",
        sort_rule,
        traits=(RecursiveMemoryEffects, Sort, LibraryCall),
        local=FACETS.local("localize_sort"),
        cost=SortCost(),
    )
    largest = FACETS.local("localize_top_k")
    definitions.define(
        "chlo.top_k",
        top_k_rule,
        extended=True,
        traits=(Pure, Unpartitioned, LibraryCall),
        local=largest,
        cost=KernelCost(),
    )
    definitions.define(
        "mhlo.topk", whole_top_k_rule, traits=(Pure, Unpartitioned, LibraryCall), local=largest, cost=KernelCost()
    )


def sort_rule(op: Op) -> OpShardingRule:
    """Replicate the sorted dimension; nothing propagates along it if no other dimension could be sharded."""
    shape = tensor_shape(op.operands[0])
    dimension = integer_of(op, "dimension", -1)
    is_blocked = all(dim == dimension or size == 1 for dim, size in enumerate(shape))
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(shape):
        if dim == dimension:
            builder.add_factor_all(dim, size, kind=FactorKind.NEED_REPLICATION, blocked=is_blocked)
        else:
            builder.add_factor_all(dim, size)
    return builder.build()


def top_k_rule(op: Op) -> OpShardingRule | None:
    """Pass all dimensions through but the one the result has less of, along which nothing propagates."""
    if not has_arity(op, 1, 2):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise_with_mismatch(
        tensor_shape(op.operands[0]), tensor_shape(op.results[0]), kind=FactorKind.NEED_REPLICATION, blocked=True
    )
    return builder.build()


def has_arity(op: Op, num_operands: int, num_results: int) -> bool:
    """Return whether an op has some numbers of operands and results."""
    return len(op.operands) == num_operands and len(op.results) == num_results


def whole_top_k_rule(op: Op) -> OpShardingRule | None:
    """Pass the batch through, and replicate the last dimension, along which nothing propagates.

    The dimension has the size of the operand, whether or not the results have less of it.
    """
    if len(op.operands) != 1 or len(op.results) != 2:
        return None
    shape = tensor_shape(op.operands[0])
    builder = OpShardingRuleBuilder.for_op(op).add_pointwise(shape[:-1])
    last = len(shape) - 1
    builder.add_factor({0: last}, {0: last, 1: last}, shape[last], kind=FactorKind.NEED_REPLICATION, blocked=True)
    return builder.build()


class SortCost(CostOpInterface):
    """A sort; what compares is not counted."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return n log n operations, n elements being those of the whole first operand."""
        count = prod(shapes.operands[0])
        return OpWork(float(count * ceil(log2(count))) if count > 1 else 0.0)

    def get_overwritten_operands(self, op: Op) -> Sequence[int]:
        """Return the operands, as in hlo_dataflow_analysis.cc::CanShareOperandBufferWithUser."""
        return range(len(op.results))


class KernelCost(CostOpInterface):
    """An op that XLA:CPU leaves to a library, whose operations it does not count."""

    def get_work(self, op: Op, shapes: OpShapes) -> OpWork:
        """Return nothing."""
        return OpWork()
