"""Recorder of debug information while shardings change.

Mirrors source_sharding.cc::SourceShardingHandler.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import TensorFactorShardings
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.transforms.debug_info.edges import EdgeLog, edge_value_ref, find_new_axes, next_step, save_edges
from shardy_py.transforms.debug_info.origins import OriginTable, collect_origins, save_origins
from shardy_py.values import frozen


@frozen
class DebugOptions:
    """Options for the debug information that a pass leaves.

    Args:
        origins: ``sdy.sharding_origins``: the annotation every axis goes back to.
        edges: ``sdy.propagation_edges``: how axes went through every op.
    """

    origins: bool = False
    edges: bool = False


class DebugRecorder:
    """Recorder of the debug information of one pass, from before the first change to the attributes at the end."""

    def __init__(self, program: Program, semantics: OpSemantics, options: DebugOptions) -> None:
        self.program = program
        self.options = options
        self.origins: OriginTable | None = collect_origins(program, semantics) if options.origins else None
        self.edges: dict[int, EdgeLog] = {}
        self._step = next_step(program)

    def record(
        self,
        op: Op,
        values: Sequence[Value | None],
        rule: OpShardingRule,
        mesh: Mesh,
        old: Sequence[TensorFactorShardings],
        new: Sequence[TensorFactorShardings],
    ) -> None:
        """Record one step.

        Args:
            op: The op; the function for a function result.
            values: The carriers of the shardings of operands, then results.
            rule: The rule.
            mesh: The mesh.
            old: The factor shardings before.
            new: The factor shardings after.
        """
        num_operands = len(rule.operand_mappings)
        for new_axis in find_new_axes(rule, mesh, old, new):
            if self.options.edges:
                source = edge_value_ref(new_axis.source, num_operands)
                target = edge_value_ref(new_axis.target, num_operands)
                self.edges.setdefault(op.id, EdgeLog()).add(self._step, new_axis.axis, source, target)
            if self.origins is not None:
                self.origins.spread(new_axis.axis, values[new_axis.source], values[new_axis.target])
        self._step += 1

    def save(self) -> None:
        """Write the attributes."""
        if self.origins is not None:
            save_origins(self.program, self.origins)
        if self.options.edges:
            save_edges(self.program, self.edges)
