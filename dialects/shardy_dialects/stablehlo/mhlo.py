"""The ops that remain of MHLO in modules made from HLO.

XLA brings rules for some of them of its own (``sdy/…/extensions/mhlo_extensions.cc``); `mhlo.erf` has none.
"""

from __future__ import annotations

from shardy_dialects.stablehlo import elementwise
from shardy_dialects.stablehlo.definitions import define
from shardy_dialects.stablehlo.indexing import bitcast_layouts
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Bitcast, Dialect, Elementwise, Pure
from shardy_py.sharding import OpShardingRule
from shardy_py.sharding.rule import FactorKind
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, pointwise_rule, tensor_shape
from shardy_py.sharding.rules.reshape import reshape_rule


def bitcast_rule(op: Op) -> OpShardingRule | None:
    """Relate dimensions as a reshape does, where both layouts are row-major."""
    is_reshape = all(list(order) == sorted(order, reverse=True) for order in bitcast_layouts(op))
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
    define(dialect, "mhlo.bitcast", bitcast_rule, extended=True, traits=(Pure, Bitcast))
