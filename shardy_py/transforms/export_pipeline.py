"""The pipeline after propagation: it undoes the preparation, and says how data gets where it is wanted.

Mirrors upstream's `addExportPipeline`.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import field

from shardy_py.transforms.finish.canonicalize_collectives import CanonicalizeCollectivesPass
from shardy_py.transforms.finish.close_shardings import CloseShardingsPass
from shardy_py.transforms.finish.constant_or_scalar_merger import ConstantOrScalarMergerPass
from shardy_py.transforms.finish.drop_propagation_data import (
    DropShardingRulesPass,
    RemovePropagationDebugInfoPass,
    RemoveShardingGroupsPass,
)
from shardy_py.transforms.finish.input_output_shardings import (
    RemoveSubAxesInInputOutputShardingsPass,
    UpdateNonDivisibleInputOutputShardingsPass,
)
from shardy_py.transforms.finish.insert_explicit_reshards import InsertExplicitReshardsPass
from shardy_py.transforms.finish.sharding_constraint_to_reshard import ShardingConstraintToReshardPass
from shardy_py.transforms.finish.sink_data_flow_edges import SinkDataFlowEdgesPass
from shardy_py.transforms.run import PassPipeline, Stage, snapshot_stage
from shardy_py.transforms.snapshots import SaveModulePass
from shardy_py.transforms.upstream import HEAD, JAXLIB, check_inline_meshes, check_upstream
from shardy_py.values import frozen


@frozen
class ExportPipeline(PassPipeline):
    """Finishing of a propagated program: shardings closed, reshards inserted, internal ops removed.

    Args:
        dump_directory: Where snapshots go; none by default.
        dump_index: The number of the first snapshot.
        avoid_export_for_partitioning: Whether to stop where the program can still be propagated again.
        enable_insert_explicit_collectives: Whether to make all communication explicit, as collectives.
        reshard_ops_without_rule: Whether that is so around ops without a rule, too, which the reference leaves alone.
        remove_all_gather_reduce_scatter_for_cmv1: Whether to drop some of these collectives again.
        keep_sharding_rules: Whether rules stay on the ops.
        dump_sharding_origins: Whether the edges' sharding origins are kept, on the ops they belong to.
        dump_propagation_edges: Whether the edges' propagation edges are kept, on the ops they belong to.
        avoid_reshards_on_calls: Accepted for pipelines of upstream, which ignores it, too.
        update_non_divisible_input_output_shardings: Whether shardings of inputs and outputs must divide their sizes.
        upstream: Whose behaviour is mirrored where versions differ: ``0.10.2`` of jaxlib, or ``head``, which also
            checks unreduced axes and reshards around ops on a single device.
        inline_meshes: Whether shardings get their meshes in place of names at the end, ``true`` or ``false``; with
            ``upstream`` it is so at ``head`` only.
    """

    name: ClassVar[str] = "sdy-export-pipeline"

    dump_directory: str = ""
    dump_index: int = 0
    avoid_export_for_partitioning: bool = False
    enable_insert_explicit_collectives: bool = False
    reshard_ops_without_rule: bool = False
    remove_all_gather_reduce_scatter_for_cmv1: bool = False
    keep_sharding_rules: bool = False
    dump_sharding_origins: bool = False
    dump_propagation_edges: bool = False
    avoid_reshards_on_calls: bool = False
    update_non_divisible_input_output_shardings: bool = True
    upstream: str = field(default=JAXLIB, validator=check_upstream)
    inline_meshes: str = field(default="upstream", validator=check_inline_meshes)

    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""
        return (*self._undo(), *self._settle(), *self._make_explicit(), *self._clean_up())

    def _undo(self) -> tuple[Stage, ...]:
        """Undo the preparation: merge constants, and remove edges, groups and constraints."""
        sink = SinkDataFlowEdgesPass(
            sink_debug_sharding_origins=self.dump_sharding_origins,
            sink_debug_propagation_edge_sharding=self.dump_propagation_edges,
        )
        stages = (
            Stage(ConstantOrScalarMergerPass(), "first: the fewer constants, the less to look at"),
            Stage(sink, "before any pass that asks a data-flow op for its shardings"),
        )
        if self.avoid_export_for_partitioning:
            return stages
        return (
            *stages,
            Stage(RemoveShardingGroupsPass(), "after propagation, the last to need them"),
            Stage(ShardingConstraintToReshardPass(), "once constraints constrain nothing more, they are reshards"),
        )

    def _settle(self) -> tuple[Stage, ...]:
        """Give shardings their last form."""
        snapshot = SaveModulePass(self.dump_directory, "after_propagation", self.dump_index)
        divisible = (
            Stage(UpdateNonDivisibleInputOutputShardingsPass(), "before closing: inputs and outputs cannot be padded"),
            Stage(RemoveSubAxesInInputOutputShardingsPass(), "after the update, which may leave a part of an axis"),
        )
        return (
            *(divisible if self.update_non_divisible_input_output_shardings else ()),
            Stage(CloseShardingsPass(), "once no sharding changes any more"),
            *snapshot_stage(snapshot, "the result of propagation, before the program says how data gets there"),
        )

    def _make_explicit(self) -> tuple[Stage, ...]:
        """Say where data is resharded, and if wanted by which collectives."""
        if self.avoid_export_for_partitioning:
            return ()
        full = self.enable_insert_explicit_collectives
        insert = InsertExplicitReshardsPass(
            enable_full_version=full, reshard_ops_without_rule=self.reshard_ops_without_rule, upstream=self.upstream
        )
        reshards = Stage(insert, "after closing: shardings are final")
        canonicalize = Stage(CanonicalizeCollectivesPass(), "after reshards and all-reduces were inserted")
        label = f"after_{'' if full else 'minimal_'}partitioner_with_global_shapes"
        snapshot = SaveModulePass(self.dump_directory, label, self.dump_index + (2 if full else 1))
        return (
            *self._verify_unreduced_axes(),
            reshards,
            *(self._collectives() if full else ()),
            canonicalize,
            *(self._without_some_collectives() if full else ()),
            *(self._block_arguments() if full else ()),
            *snapshot_stage(snapshot, "what a partitioner gets, but for the rules"),
        )

    def _verify_unreduced_axes(self) -> tuple[Stage, ...]:
        if self.upstream != HEAD:
            return ()
        from shardy_py.transforms.finish.verify_unreduced_axes import VerifyUnreducedAxesPass

        return (Stage(VerifyUnreducedAxesPass(), "before reshards, which would go on from wrong ones"),)

    def _inline_meshes(self) -> tuple[Stage, ...]:
        is_wanted = self.inline_meshes == "true" or (self.inline_meshes == "upstream" and self.upstream == HEAD)
        if not is_wanted or self.avoid_export_for_partitioning:
            return ()
        from shardy_py.transforms.finish.drop_meshes import InlineMeshesPass

        return (Stage(InlineMeshesPass(), "last: all others look meshes up by their names"),)

    def _collectives(self) -> tuple[Stage, ...]:
        # Most pipelines are without these, and a command imports what it runs; so below.
        from shardy_py.transforms.finish.canonicalize_reshards import CanonicalizeReshardsPass
        from shardy_py.transforms.finish.reshard_to_collectives import ReshardToCollectivesPass

        snapshot = SaveModulePass(self.dump_directory, "after_explicit_reshards", self.dump_index + 1)
        return (
            *snapshot_stage(snapshot, "while reshards can still be seen"),
            Stage(CanonicalizeReshardsPass(), "before they become collectives: of two in a row one is enough"),
            Stage(
                ReshardToCollectivesPass(),
                "before collectives are simplified, as it makes more",
            ),
        )

    def _without_some_collectives(self) -> tuple[Stage, ...]:
        if not self.remove_all_gather_reduce_scatter_for_cmv1:
            return ()
        from shardy_py.transforms.finish.canonicalize_collectives import (
            RemoveAllGatherReduceScatterForCMV1Pass,
        )

        return (Stage(RemoveAllGatherReduceScatterForCMV1Pass(), "after simplifying, which makes reduce-scatters"),)

    def _block_arguments(self) -> tuple[Stage, ...]:
        from shardy_py.transforms.finish.reshard_to_collectives import ReshardBlockArgumentsPass

        return (Stage(ReshardBlockArgumentsPass(), "after simplifying, which looks for collectives of collectives"),)

    def _clean_up(self) -> tuple[Stage, ...]:
        """Drop data that only propagation and finishing need."""
        debug = Stage(RemovePropagationDebugInfoPass(), "late: snapshots show the debug information")
        rules = Stage(DropShardingRulesPass(), "last: inserting reshards was the last to need rules")
        return (
            *((debug,) if self.dump_propagation_edges or self.dump_sharding_origins else ()),
            *(() if self.keep_sharding_rules else (rules,)),
            *self._inline_meshes(),
        )
