"""Ops that change the shape or the order of elements: broadcasts, reshapes, transposes, reversals, sizes of dimensions.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from math import prod

from shardy_dialects.stablehlo.attributes import dense_of, integers_of
from shardy_dialects.stablehlo.bodies import move
from shardy_dialects.stablehlo.definitions import Definitions, LazyFacets, shape_of
from shardy_py.indexing import OpIndexing, op_maps
from shardy_py.ir.graph.program import Op
from shardy_py.ir.interfaces.local import local_by_types
from shardy_py.plugins import Bitcast, Broadcast, ConstantFoldable, PassThrough, Pure, ReadsSizes, Reshape
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape
from shardy_py.sharding.rules.pointwise import expanded_rule
from shardy_py.sharding.rules.reshape import reshape, reshape_rule
from shardy_py.sharding.rules.reshape import transpose_rule as transposition

BROADCAST, RESHAPE = "stablehlo.broadcast_in_dim", "stablehlo.reshape"
FACETS = LazyFacets(__name__)


def register(definitions: Definitions) -> None:
    """Define the ops that change the shape or the order of elements."""
    _define_broadcasts(definitions)
    reshaping, moving = FACETS.cost("ReshapingCost"), FACETS.cost("MovingCost")
    definitions.define(
        RESHAPE,
        reshape_rule,
        traits=(Pure, PassThrough, ConstantFoldable, Reshape),
        maps=reshape_maps,
        body=move,
        local=FACETS.local("localize_reshape"),
        cost=reshaping,
    )
    definitions.define(
        "stablehlo.dynamic_reshape", reshape, extended=True, local=FACETS.local("localize_dynamic_reshape")
    )
    definitions.define(
        "stablehlo.transpose",
        transpose_rule,
        traits=(Pure, PassThrough),
        maps=transpose_maps,
        body=move,
        local=local_by_types,
        cost=moving,
    )
    definitions.define(
        "stablehlo.reverse",
        reverse_rule,
        maps=reverse_maps,
        body=move,
        local=FACETS.local("localize_reverse"),
        cost=FACETS.cost("ReverseCost"),
    )
    definitions.define("stablehlo.set_dimension_size", set_dimension_size_rule, extended=True)
    definitions.define(
        "stablehlo.get_dimension_size",
        get_dimension_size_rule,
        extended=True,
        traits=(Pure, ReadsSizes),
        local=FACETS.local("localize_get_dimension_size"),
    )
    bits = LazyFacets("shardy_dialects.stablehlo.elementwise").body("bitcast_convert", module="conversion")
    definitions.define(
        "mhlo.bitcast", bitcast_rule, extended=True, traits=(Pure, Bitcast), maps=bitcast_maps, body=bits
    )


def _define_broadcasts(definitions: Definitions) -> None:
    definitions.define(
        BROADCAST,
        broadcast_in_dim_rule,
        traits=(Pure, Broadcast, ConstantFoldable),
        maps=broadcast_in_dim_maps,
        body=move,
        local=local_by_types,
        cost=FACETS.cost("ReshapingCost"),
    )
    definitions.define(
        "stablehlo.broadcast",
        broadcast_rule,
        extended=True,
        maps=leading_broadcast_maps,
        body=move,
        local=FACETS.local("localize_broadcast"),
        cost=FACETS.cost("MovingCost"),
    )
    definitions.define(
        "stablehlo.dynamic_broadcast_in_dim",
        broadcast_in_dim_rule,
        extended=True,
        local=FACETS.local("localize_dynamic_broadcast"),
    )


def broadcast_in_dim_rule(op: Op) -> OpShardingRule:
    """Tie each operand dimension to its result dimension unless its size 1 is expanded."""
    return _broadcast(op, integers_of(op, "broadcast_dimensions"))


def broadcast_rule(op: Op) -> OpShardingRule:
    """Tie the operand to the last dimensions of the result."""
    rank, out_rank = len(tensor_shape(op.operands[0])), len(tensor_shape(op.results[0]))
    return _broadcast(op, tuple(range(out_rank - rank, out_rank)))


def _broadcast(op: Op, dimensions: tuple[int, ...]) -> OpShardingRule:
    return expanded_rule(op, {out_dim: in_dim for in_dim, out_dim in enumerate(dimensions)})


def transpose_rule(op: Op) -> OpShardingRule:
    """Tie each result dimension to the operand dimension it comes from."""
    return transposition(op, integers_of(op, "permutation"))


def reverse_rule(op: Op) -> OpShardingRule:
    """Permute along the reversed dimensions, pass the others through."""
    reversed_dims = integers_of(op, "dimensions")
    builder = OpShardingRuleBuilder.for_op(op)
    builder.add_pointwise(
        tensor_shape(op.results[0]),
        kind=lambda dim: FactorKind.PERMUTATION if dim in reversed_dims else FactorKind.PASS_THROUGH,
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


def bitcast_rule(op: Op) -> OpShardingRule | None:
    """Relate dimensions as a reshape does, where both layouts are row-major, and elements of one size."""
    is_reshape = prod(tensor_shape(op.operands[0])) == prod(tensor_shape(op.results[0]))
    is_reshape = is_reshape and all(list(order) == sorted(order, reverse=True) for order in bitcast_layouts(op))
    return reshape_rule(op) if is_reshape else None


def broadcast_in_dim_maps(op: Op) -> OpIndexing:
    """Read the dimensions that the operand has; those of size one that are expanded are read at 0."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    dimensions = integers_of(op, "broadcast_dimensions")
    read = op_maps.broadcast(output, dimensions, shape)
    return OpIndexing([read], [op_maps.broadcast_to_output(shape, output, dimensions)])


def transpose_maps(op: Op) -> OpIndexing:
    """Read the index with its dimensions in another order."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    permutation = integers_of(op, "permutation")
    return OpIndexing([op_maps.transpose(output, permutation)], [op_maps.transpose_to_output(shape, permutation)])


def reshape_maps(op: Op) -> OpIndexing:
    """Read the element at the same place in row-major order."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    return OpIndexing([op_maps.reshape(output, shape)], [op_maps.reshape(shape, output)])


def bitcast_layouts(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dimensions of the operand and of the result of a bitcast, those that vary fastest in memory first."""
    orders = []
    for name, value in (("source_layout", op.operands[0]), ("result_layout", op.results[0])):
        layout = dense_of(op, name)
        row_major = range(len(shape_of(value)) - 1, -1, -1)
        orders.append(tuple(row_major) if layout is None else tuple(map(int, layout.values)))
    return orders[0], orders[1]


def bitcast_maps(op: Op) -> OpIndexing | None:
    """Read the element at the same place in memory; elements of another size have no map."""
    source, target = bitcast_layouts(op)
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    if prod(output) != prod(shape):
        return None
    return OpIndexing(
        [op_maps.bitcast(output, target, shape, source)], [op_maps.bitcast(shape, source, output, target)]
    )


def reverse_maps(op: Op) -> OpIndexing:
    """Read some dimensions from their end."""
    both = op_maps.reverse(shape_of(op.results[0]), integers_of(op, "dimensions"))
    return OpIndexing([both], [both])


def leading_broadcast_maps(op: Op) -> OpIndexing:
    """Read the operand at the last indices, whatever those along the new dimensions before them."""
    output, shape = shape_of(op.results[0]), shape_of(op.operands[0])
    dimensions = range(len(output) - len(shape), len(output))
    return OpIndexing([op_maps.broadcast(output, dimensions)], [op_maps.broadcast_to_output(shape, output, dimensions)])
