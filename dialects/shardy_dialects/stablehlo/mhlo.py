"""The ops that remain of MHLO in modules made from HLO."""

from __future__ import annotations

from shardy_dialects.stablehlo import elementwise
from shardy_dialects.stablehlo.definitions import define
from shardy_dialects.stablehlo.indexing import bitcast_layouts
from shardy_py.ir.graph import Op
from shardy_py.plugins import Bitcast, Dialect, Elementwise, Pure
from shardy_py.rules.reshape import reshape_rule
from shardy_py.sharding import OpShardingRule
from shardy_py.sharding.rule_builder import pointwise_rule


def bitcast_rule(op: Op) -> OpShardingRule | None:
    """Relate dimensions as a reshape does, where both layouts are row-major."""
    is_reshape = all(list(order) == sorted(order, reverse=True) for order in bitcast_layouts(op))
    return reshape_rule(op) if is_reshape else None


def register(dialect: Dialect) -> None:
    """Define the ops."""
    define(dialect, "mhlo.erf", pointwise_rule, extended=True, traits=elementwise.ELEMENTWISE_TRAITS)
    define(dialect, "mhlo.copy", pointwise_rule, extended=True, traits=(Pure, Elementwise))
    define(dialect, "mhlo.bitcast", bitcast_rule, extended=True, traits=(Pure, Bitcast))
