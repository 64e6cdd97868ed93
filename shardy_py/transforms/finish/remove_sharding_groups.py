"""Remove the sharding groups after propagation.

Mirrors remove_sharding_groups.cc::RemoveShardingGroupsPass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import SHARDING_GROUP
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields


class RemoveShardingGroupsPass(NoFields):
    """Erase every ``sdy.sharding_group``."""

    name: ClassVar[str] = "sdy-remove-sharding-groups"

    def run(self, program: Program, context: PassContext) -> None:
        """Erase the groups of all functions."""
        for op in ops_named(program, SHARDING_GROUP):
            op.erase()
