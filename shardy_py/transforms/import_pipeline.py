"""The pipeline before propagation: it prepares a program.

Mirrors upstream's `addImportPipeline`.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.transforms.prepare.add_data_flow_edges import AddDataFlowEdgesPass
from shardy_py.transforms.prepare.apply_sharding_constraints import ApplyShardingConstraintsPass
from shardy_py.transforms.prepare.constant_or_scalar_splitter import ConstantOrScalarSplitterPass
from shardy_py.transforms.prepare.import_func_calls import PropagateShardingFromFuncToCallPass
from shardy_py.transforms.prepare.import_sharding_groups import ShardingGroupImportPass
from shardy_py.transforms.prepare.lift_inlined_meshes import LiftInlinedMeshesPass
from shardy_py.transforms.prepare.manual_axes_cleanup import ManualAxesCleanupPass
from shardy_py.transforms.prepare.remove_size_one_axes import RemoveSizeOneAxesPass
from shardy_py.transforms.prepare.symbol_dce import SymbolDcePass
from shardy_py.transforms.run import PassPipeline, Stage, snapshot_stage
from shardy_py.transforms.snapshots import SaveModulePass
from shardy_py.values import frozen

EXPLICIT_BATCHING = "sdy-explicit-gather-scatter-batching"


@frozen
class ImportPipeline(PassPipeline):
    """Preparation of a program for propagation.

    Args:
        dedup_functions_fully: Whether calls share their functions during propagation; then constraints and groups
            can be handled here already, otherwise only after calls were given functions of their own.
        dump_directory: Where snapshots go; none by default.
        dump_index: The number of the first snapshot.
        debug_sharding_origins: Whether to leave on every value which annotation each axis goes back to.
        debug_propagation_edge_sharding: Whether to leave on every op how axes went through it.
        enable_explicit_gather_scatter_batching: Whether batch dimensions that are indexed by an iota become batching
            dimensions; needs a plugin with a pass for it.
    """

    name: ClassVar[str] = "sdy-import-pipeline"

    dedup_functions_fully: bool = False
    dump_directory: str = ""
    dump_index: int = 0
    debug_sharding_origins: bool = False
    debug_propagation_edge_sharding: bool = False
    enable_explicit_gather_scatter_batching: bool = False

    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""
        snapshot = SaveModulePass(self.dump_directory, "before_propagation", self.dump_index)
        stages = (
            Stage(SymbolDcePass(keep_main=True), "first: what nobody calls need not be looked at by any other pass"),
            Stage(LiftInlinedMeshesPass(), "before all that compares meshes: from here on equal meshes have one name"),
            Stage(RemoveSizeOneAxesPass(), "before any sharding is copied: axes of size one mean nothing"),
            Stage(PropagateShardingFromFuncToCallPass(), "while calls and functions still belong together as written"),
            Stage(ConstantOrScalarSplitterPass(), "before data flows are tied: each user gets a constant of its own"),
            *self._batching(),
            Stage(
                SymbolDcePass(keep_main=True),
                "after the splitter, which leaves functions without a call where it copied calls",
            ),
            Stage(ManualAxesCleanupPass(), "before edges copy the shardings of manual computations"),
            *snapshot_stage(
                snapshot, "before the internal ops of propagation (edges, copies) make the program hard to read"
            ),
            Stage(AddDataFlowEdgesPass(), "after all that may erase or copy ops, and their edges with them"),
        )
        if not self.dedup_functions_fully:
            return stages
        return stages + constraint_stages(
            debug_sharding_origins=self.debug_sharding_origins,
            debug_propagation_edge_sharding=self.debug_propagation_edge_sharding,
        )

    def _batching(self) -> tuple[Stage, ...]:
        if not self.enable_explicit_gather_scatter_batching:
            return ()
        # Not at the top: names lead to pipelines.
        from shardy_py.transforms.pass_names import get_pass

        return (Stage(get_pass(EXPLICIT_BATCHING)(), "after the splitter: it looks for iotas, and leaves unused ones"),)


def constraint_stages(*, debug_sharding_origins: bool, debug_propagation_edge_sharding: bool) -> tuple[Stage, ...]:
    """Return the passes that apply sharding constraints and groups: once each function has one sharding.

    Args:
        debug_sharding_origins: As in `ImportPipeline`.
        debug_propagation_edge_sharding: The same.
    """
    apply = ApplyShardingConstraintsPass(
        debug_sharding_origins=debug_sharding_origins,
        debug_propagation_edge_sharding=debug_propagation_edge_sharding,
    )
    return (
        Stage(apply, "after edges were added: constraints on their values replace uses instead"),
        Stage(ShardingGroupImportPass(), "after constraints: members that are sharded differently by now are an error"),
    )
