"""Drop the sharding rules that propagation left on the ops.

Mirrors drop_sharding_rules.cc::DropShardingRulesPass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.rule_attributes import drop_rules
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class DropShardingRulesPass(NoFields):
    """Remove every ``sdy.sharding_rule`` but those the user wrote, which are marked as custom."""

    name: ClassVar[str] = "sdy-drop-sharding-rules"

    def run(self, program: Program, context: PassContext) -> None:
        """Drop the rules of all ops."""
        drop_rules(program)
