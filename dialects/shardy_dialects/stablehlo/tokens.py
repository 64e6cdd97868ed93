"""Ops that need no rule: tokens, tuples, device numbers, host communication.

Mirrors op_sharding_rule_registry.cc::createOpShardingRule.
"""

from __future__ import annotations

from shardy_dialects.stablehlo.definitions import Definitions


def register(definitions: Definitions) -> None:
    """Define the ops without a rule, and the types of tokens."""
    definitions.define([f"stablehlo.{name}" for name in PURE])
    definitions.define([f"stablehlo.{name}" for name in WITH_SIDE_EFFECTS], traits=())
    for name in ("token", "future"):
        definitions.stablehlo.type(f"!stablehlo.{name}")


PURE = ("after_all", "create_token", "get_tuple_element", "partition_id", "replica_id", "tuple")


WITH_SIDE_EFFECTS = ("async_done", "async_start", "composite", "infeed", "outfeed", "recv", "send")
