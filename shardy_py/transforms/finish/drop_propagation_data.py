"""Remove what only propagation needs: sharding rules on ops, sharding groups, debug information.

Mirrors drop_sharding_rules.cc::DropShardingRulesPass, remove_sharding_groups.cc::RemoveShardingGroupsPass and
remove_propagation_debug_info.cc::RemovePropagationDebugInfoPass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.op_names import FUNCTION, SHARDING_GROUP
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rule_attributes import drop_rules
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class DropShardingRulesPass(NoFields):
    """Remove every ``sdy.sharding_rule`` but those the user wrote, which are marked as custom."""

    name: ClassVar[str] = "sdy-drop-sharding-rules"

    def run(self, program: Program, context: PassContext) -> None:
        """Drop the rules of all ops."""
        drop_rules(program)


class RemoveShardingGroupsPass(NoFields):
    """Erase every ``sdy.sharding_group``."""

    name: ClassVar[str] = "sdy-remove-sharding-groups"

    def run(self, program: Program, context: PassContext) -> None:
        """Erase the groups of all functions."""
        for op in ops_named(program, SHARDING_GROUP):
            op.erase()


_DEBUG_INFO = (
    "sdy.propagation_edges",
    "sdy.block_arg_propagation_edges",
    "sdy.result_propagation_edges",
    "sdy.sharding_origins",
    "sdy.block_arg_sharding_origins",
    "sdy.result_sharding_origins",
)


class RemovePropagationDebugInfoPass(NoFields):
    """Remove the attributes with propagation edges and sharding origins from ops, and arguments and results."""

    name: ClassVar[str] = "sdy-remove-propagation-debug-info"

    def run(self, program: Program, context: PassContext) -> None:
        """Remove the attributes of all ops."""
        for op in program.walk():
            if op.name == FUNCTION:
                _remove_from_dictionaries(op, "arg_attrs")
                _remove_from_dictionaries(op, "res_attrs")
                continue
            for name in _DEBUG_INFO:
                if name in op.attributes:
                    del op.attributes[name]


def _remove_from_dictionaries(function: Op, name: str) -> None:
    dictionaries: tuple[Mapping[str, Attribute], ...] | None = function.attributes.get(name)
    if not dictionaries or not any(info in item for item in dictionaries for info in _DEBUG_INFO):
        return
    remaining = tuple({key: value for key, value in item.items() if key not in _DEBUG_INFO} for item in dictionaries)
    if any(remaining):
        function.attributes[name] = remaining
    else:
        del function.attributes[name]
