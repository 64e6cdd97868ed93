"""Ops that need no rule: constants, tokens, tuples, device numbers, terminators, host communication.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.definitions import define
from shardy_py.plugins import (
    AsSdyConstant,
    ConstantFoldable,
    ConstantLike,
    Dialect,
    IsTerminator,
    Pure,
    RecursiveMemoryEffects,
    UnitedByMlir,
)

PURE = ("after_all", "create_token", "dynamic_iota", "get_tuple_element", "partition_id", "replica_id", "tuple")
WITH_SIDE_EFFECTS = ("async_done", "async_start", "composite", "infeed", "outfeed", "recv", "send")


def register(dialect: Dialect) -> None:
    """Define the ops without a rule."""
    define(dialect, "stablehlo.constant", traits=(Pure, ConstantLike, AsSdyConstant, UnitedByMlir))
    # Without operands, it is always copied together with its users.
    define(dialect, "stablehlo.iota", traits=(Pure, ConstantFoldable))
    define(dialect, "stablehlo.return", traits=(Pure, IsTerminator))
    define(dialect, "stablehlo.if", traits=(RecursiveMemoryEffects,))
    for name in PURE:
        define(dialect, f"stablehlo.{name}")
    for name in WITH_SIDE_EFFECTS:
        define(dialect, f"stablehlo.{name}", traits=())
