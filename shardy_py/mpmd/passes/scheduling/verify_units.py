"""The number of scheduling units of each mesh.

Mirrors mpmd/transforms/optimize/scheduling_units_verifier.cc.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import call_counter_of, is_fragment, mpmd_functions
from shardy_py.mpmd.dialect.types import require_topology
from shardy_py.mpmd.passes.scheduling.pipeline_scheduler import unit_of
from shardy_py.values import NoFields


class SchedulingUnitsVerifierPass(NoFields):
    """Warn of meshes that have not one forward and one backward unit per microbatch."""

    name: ClassVar[str] = "mpmd-scheduling-units-verifier"

    def run(self, program: Program, context: PassContext) -> None:
        """Count the units of each function."""
        for function in mpmd_functions(program):
            self._count(function, context)

    def _count(self, function: Op, context: PassContext) -> None:
        topology = require_topology(function)
        fragments = [op for op in block_of(function).ops if is_fragment(op)]
        microbatches = len({call_counter_of(op) for op in fragments} - {None})
        units = [unit for op in fragments if (unit := unit_of(op, topology)) is not None]
        counts = Counter((unit.mesh_name, unit.is_forward) for unit in units if unit.split != "drop")
        for mesh in topology.device_meshes if microbatches else ():
            for kind, is_forward in (("forward", True), ("backward", False)):
                count = counts[mesh, is_forward]
                if count != microbatches:
                    message = (
                        f"Number of {kind} scheduling units in mesh {mesh} does not match expected number for "
                        f"{microbatches} microbatches. Got {count}."
                    )
                    context.warnings.append(Diagnostic("unit-count", message, function.location, function.name))
