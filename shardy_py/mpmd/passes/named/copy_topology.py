"""The topology of callees."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import callee_name, callees_first
from shardy_py.mpmd.dialect.op_names import CALL, TOPOLOGY
from shardy_py.values import NoFields


class CopyTopologyFromMainPass(NoFields):
    """Give every function that ``mpmd.call`` calls the topology of its caller, and make it private."""

    name: ClassVar[str] = "mpmd-copy-topology-from-main"

    def run(self, program: Program, context: PassContext) -> None:
        """Copy from callers to callees, callers first."""
        functions = program.functions
        for function in reversed(callees_first(program)):
            topology = function.attributes.get(TOPOLOGY)
            if topology is None:
                continue
            for op in list(function.walk()):
                callee = functions.get(callee_name(op)) if op.name == CALL else None
                if callee is not None:
                    callee.attributes[TOPOLOGY] = topology
                    callee.attributes["sym_visibility"] = "private"
