"""The ops that remain of MHLO in modules made from HLO.

XLA brings rules for some of them of its own (``sdy/…/extensions/mhlo_extensions.cc``); `mhlo.erf` has none.
"""

from __future__ import annotations

from math import prod

from shardy_dialects.stablehlo import elementwise
from shardy_dialects.stablehlo.definitions import attribute, define
from shardy_dialects.stablehlo.indexing import bitcast_layouts
from shardy_dialects.stablehlo.ragged_dot import ragged_dot_rule
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Bitcast, Dialect, Elementwise, IsolatedFromAbove, Pure, RecursiveMemoryEffects
from shardy_py.sharding import OpShardingRule
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule, tensor_shape
from shardy_py.sharding.rules.reshape import reshape_rule


def bitcast_rule(op: Op) -> OpShardingRule | None:
    """Relate dimensions as a reshape does, where both layouts are row-major, and elements of one size."""
    is_reshape = prod(tensor_shape(op.operands[0])) == prod(tensor_shape(op.results[0]))
    is_reshape = is_reshape and all(list(order) == sorted(order, reverse=True) for order in bitcast_layouts(op))
    return reshape_rule(op) if is_reshape else None


def top_k_rule(op: Op) -> OpShardingRule | None:
    """Pass the batch through, and replicate the last dimension, along which nothing propagates.

    The dimension has the size of the operand, whether or not the results have less of it.
    """
    if len(op.operands) != 1 or len(op.results) != 2:
        return None
    shape = tensor_shape(op.operands[0])
    builder = OpShardingRuleBuilder.for_op(op).add_pointwise(shape[:-1])
    last = len(shape) - 1
    builder.add_factor([last], [last, last], shape[last], kind=FactorKind.NEED_REPLICATION, blocked=True)
    return builder.build()


def scan_rule(op: Op) -> OpShardingRule | None:
    """Pass all dimensions but the scanned one between inputs, outputs, starts and carries.

    Shards of the scanned dimension of an associative scan exchange their totals; any other scan replicates it. Where
    the body changes shapes, only the scanned dimension has a factor.

    XLA's dumps print the same rules.
    """
    num_inputs, num_outputs = (attribute(op, name, (0, 0))[0] for name in ("operandSegmentSizes", "resultSegmentSizes"))
    inputs, starts = op.operands[:num_inputs], op.operands[num_inputs:]
    outputs, scanned = op.results[:num_outputs], int(attribute(op, "dimension", 0))
    if not inputs or not outputs:
        return None
    shape = tensor_shape(inputs[0])
    rest = (*shape[:scanned], *shape[scanned + 1 :])
    keeps_shapes = len(inputs) == len(outputs) == len(starts)
    keeps_shapes = keeps_shapes and all(tensor_shape(value) == shape for value in (*inputs, *outputs))
    keeps_shapes = keeps_shapes and all(tensor_shape(value) == rest for value in starts)
    is_associative = bool(attribute(op, "is_associative", False)) and keeps_shapes
    builder = OpShardingRuleBuilder.for_op(op)
    num_carries = len(op.results) - num_outputs
    for dim, size in enumerate(shape):
        kind = FactorKind.PASS_THROUGH
        carried = None if dim == scanned else dim - (dim > scanned)
        if dim == scanned:
            kind = FactorKind.PERMUTATION if is_associative else FactorKind.NEED_REPLICATION
        elif not keeps_shapes:
            continue
        operand_dims = [dim] * num_inputs + [carried] * len(starts)
        builder.add_factor(operand_dims, [dim] * num_outputs + [carried] * num_carries, size, kind=kind)
    return builder.build()


def register(dialect: Dialect) -> None:
    """Define the ops."""
    define(
        dialect,
        "mhlo.erf",
        pointwise_rule,
        extended=True,
        never_like_jit=True,
        traits=elementwise.ELEMENTWISE_TRAITS,
    )
    define(dialect, "mhlo.copy", pointwise_rule, traits=(Pure, Elementwise))
    define(dialect, "mhlo.topk", top_k_rule, traits=(Pure,))
    define(dialect, "mhlo.ragged_dot", ragged_dot_rule)
    define(dialect, "mhlo.scan", scan_rule, traits=(IsolatedFromAbove, RecursiveMemoryEffects))
    define(dialect, "mhlo.bitcast", bitcast_rule, extended=True, traits=(Pure, Bitcast))
