"""Write the sharding rule of every op onto it."""

from __future__ import annotations

from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE, write_rule
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import frozen


@frozen
class PopulateOpShardingRulesPass:
    """Set ``sdy.sharding_rule`` on every op in a function that has a rule; one that is there already stays.

    Args:
        conservative_propagation: Leave out factors that could be sharded unevenly.
    """

    name: ClassVar[str] = "sdy-populate-op-sharding-rules"

    conservative_propagation: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Set the rules in place."""
        semantics = context.semantics
        semantics = semantics.with_options(evolve(semantics.options, conservative=self.conservative_propagation))
        for function in program.functions.values():
            for op in function.walk():
                if RULE_ATTRIBUTE in op.attributes:
                    continue
                rule = semantics.get_sharding_rule(op)
                if rule is not None and rule.may_stand_on_op:
                    write_rule(op, rule)
