"""The pipelines of programs over several meshes.

Mirrors mpmd/transforms/import/import_pipeline.cc and optimize/optimize_pipeline.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.mpmd.passes.fragments.dead_fragments import FragmentDcePass, FragmentDedupPass
from shardy_py.mpmd.passes.fragments.merge_passes import (
    AbsorbInferredFragmentsPass,
    MergeForwardWithBackwardPass,
    MergeInferredFragmentsPass,
    MergeUserFragmentsIntoSchedulingUnitsPass,
)
from shardy_py.mpmd.passes.fragments.move_transfers import MoveTransfersToProducerPass, RemoveTransferCyclesPass
from shardy_py.mpmd.passes.fragments.remat import RematFragmentPass
from shardy_py.mpmd.passes.fragments.split_backward import SplitBwdFragmentsPass
from shardy_py.mpmd.passes.inference.constraints import EnforceInputOutputEquishardingPass
from shardy_py.mpmd.passes.inference.pipeline import InferMeshPipeline
from shardy_py.mpmd.passes.inference.validate import DEFAULT_LIMIT
from shardy_py.mpmd.passes.named.call_inline import CallInlinePass
from shardy_py.mpmd.passes.named.calls_to_named_ops import CallsToNamedOpsPass
from shardy_py.mpmd.passes.named.copy_topology import CopyTopologyFromMainPass
from shardy_py.mpmd.passes.named.fold_splats import FoldSplatsPass
from shardy_py.mpmd.passes.named.inline_nested import InlineNestedUserExposedOpsPass
from shardy_py.mpmd.passes.named.introduce_transfers import IntroduceTransfersPass
from shardy_py.mpmd.passes.named.map_input_output import MapInputOutputToMeshPass
from shardy_py.mpmd.passes.named.map_named_ops import MapNamedOpsToMpmdOpsPass
from shardy_py.mpmd.passes.named.nameless_clones import InsertNamelessCloneOfNegligibleOpsPass
from shardy_py.mpmd.passes.named.simplify_named_computations import SimplifyNamedComputationsPass
from shardy_py.mpmd.passes.named.simplify_ops import SimplifyOpsPass
from shardy_py.mpmd.passes.named.topology_meshes import GenerateSdyMeshesFromTopologyPass
from shardy_py.mpmd.passes.named.unroll_loops import FromUnrollToCallCounterPass, UnrollForLoopsPass
from shardy_py.mpmd.passes.named.unused_arguments import (
    EraseUnusedCalleeBlockArgumentsPass,
    SinkNegligibleOpsIntoCallOpPass,
)
from shardy_py.mpmd.passes.named.validate_named_ops import ValidateNamedOpsInMpmdFuncPass
from shardy_py.mpmd.passes.scheduling.pipeline_scheduler import PipelineSchedulerPass
from shardy_py.mpmd.passes.scheduling.rule_passes import RuleBasedMergePass, RuleBasedSchedulePass
from shardy_py.mpmd.passes.scheduling.verify_stages import VerifyStageMergingPass
from shardy_py.mpmd.passes.scheduling.verify_units import SchedulingUnitsVerifierPass
from shardy_py.transforms.canonicalize import CanonicalizePass, CsePass
from shardy_py.transforms.prepare.inline_calls import InlineCallsPass
from shardy_py.transforms.prepare.symbol_dce import SymbolDcePass
from shardy_py.transforms.run import PassPipeline, Stage
from shardy_py.values import frozen


@frozen
class MpmdImportPipeline(PassPipeline):
    """Turn named computations into fragments with transfers, and give every other op a mesh.

    Args:
        name_to_mesh_assignment: The meshes, and perhaps stages, of names.
        input_assignment: The meshes of arguments by number.
        output_assignment: The meshes of results by number.
        infer_transfers: Whether transfers may be added that no name asks for.
        infer_cross_mesh_reductions: Whether reductions of values of several meshes become reductions over meshes.
        merge_after_scheduling: Whether inferred fragments are merged after scheduling only.
        enable_heterogeneous_meshes: Whether the meshes of the topology differ, and axes begin with their names.
        constraints: Pairs ``argument:result`` by number that are on one mesh.
        cheapest_transfers: Whether values move where the fewest bytes do, not as soon as another mesh uses them.
        verify_schedule_units: Whether to warn of meshes without one forward and one backward unit per microbatch.
        split_bwd_fragments: Whether backward fragments are split, for schedules that delay gradients of weights.
    """

    name: ClassVar[str] = "mpmd-import-pipeline"

    name_to_mesh_assignment: tuple[str, ...] = ()
    input_assignment: tuple[str, ...] = ()
    output_assignment: tuple[str, ...] = ()
    infer_transfers: bool = False
    infer_cross_mesh_reductions: bool = False
    merge_after_scheduling: bool = False
    enable_heterogeneous_meshes: bool = False
    constraints: tuple[str, ...] = ()
    cheapest_transfers: bool = False
    verify_schedule_units: bool = False
    split_bwd_fragments: bool = False

    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""
        names = self.name_to_mesh_assignment
        functions = tuple(item.partition("@")[0] for item in names)
        inference = InferMeshPipeline(
            infer_transfers=self.infer_transfers,
            infer_cross_mesh_reductions=self.infer_cross_mesh_reductions,
            error_limit=DEFAULT_LIMIT,
            constraints=self.constraints,
            cheapest_transfers=self.cheapest_transfers,
        )
        inputs = MapInputOutputToMeshPass(
            input_assignment=self.input_assignment, output_assignment=self.output_assignment
        )
        return (
            Stage(CallsToNamedOpsPass(names=functions), "before calls are inlined: some stand for names"),
            Stage(
                ValidateNamedOpsInMpmdFuncPass(fail_on_misplaced_names=True, of_public_functions=True),
                "inlining takes functions away",
            ),
            Stage(InlineCallsPass(), "inference looks at ops, not into functions"),
            Stage(CsePass(), "equal ops would get a mesh each"),
            Stage(FoldSplatsPass(), "what is constant needs no mesh"),
            Stage(CanonicalizePass(), "what folds needs none, either"),
            Stage(CopyTopologyFromMainPass(), "microbatches are on the meshes of their caller"),
            *(_mesh_stages() if self.enable_heterogeneous_meshes else ()),
            Stage(UnrollForLoopsPass(), "the rest knows straight code only"),
            Stage(CanonicalizePass(), "indices of unrolled loops are constants"),
            Stage(SimplifyOpsPass(), "what a dialect folds needs no mesh, either"),
            Stage(FromUnrollToCallCounterPass(), "each iteration is a microbatch"),
            Stage(SinkNegligibleOpsIntoCallOpPass(), "constants have no mesh; as arguments they would need one"),
            Stage(
                InsertNamelessCloneOfNegligibleOpsPass(), "constants that a computation returns have no mesh, either"
            ),
            Stage(SimplifyNamedComputationsPass(), "what passes through a computation is not part of it"),
            Stage(inputs, "what the user chose is fixed before anything is inferred"),
            Stage(InlineNestedUserExposedOpsPass(assignment=names), "a fragment holds no names"),
            Stage(
                ValidateNamedOpsInMpmdFuncPass(fail_on_misplaced_names=True),
                "names outside of functions with a topology have no effect",
            ),
            Stage(MapNamedOpsToMpmdOpsPass(assignment=names), "names become fragments, assigns and unassigns"),
            Stage(IntroduceTransfersPass(), "between the meshes of names, before others are inferred"),
            Stage(EraseUnusedCalleeBlockArgumentsPass(), "what passes through a microbatch needs no mesh there"),
            *inference.stages(),
            *(() if self.merge_after_scheduling else merge_stages()),
            Stage(EnforceInputOutputEquishardingPass(constraints=self.constraints), "all have their meshes"),
            Stage(FragmentDedupPass(), "merging makes duplicate operands and results"),
            Stage(FragmentDcePass(), "and values without users"),
            Stage(RemoveTransferCyclesPass(), "round trips show once each value has its mesh"),
            Stage(CallInlinePass(), "schedules order the fragments of all microbatches"),
            Stage(SymbolDcePass(), "the functions of microbatches are not called any more"),
            *(() if self.merge_after_scheduling else (_merge_again(),)),
            Stage(FragmentDcePass(), "inlining leaves values that one microbatch does not use"),
            Stage(MoveTransfersToProducerPass(), "a transfer starts as soon as its value is there"),
            Stage(MergeUserFragmentsIntoSchedulingUnitsPass(), "a unit is all that a mesh does for one microbatch"),
            *(_verify_stages() if self.verify_schedule_units else ()),
            *(_split_stages() if self.split_bwd_fragments else ()),
        )


def _mesh_stages() -> tuple[Stage, ...]:
    return (Stage(GenerateSdyMeshesFromTopologyPass(), "before shardings are moved about"),)


def _verify_stages() -> tuple[Stage, ...]:
    return (Stage(SchedulingUnitsVerifierPass(), "units are merged by now"),)


def _split_stages() -> tuple[Stage, ...]:
    return (
        Stage(SplitBwdFragmentsPass(), "once a unit has all its results"),
        Stage(FragmentDcePass(), "each half needs some operands only"),
    )


def merge_stages() -> tuple[Stage, ...]:
    """Return the passes that merge inferred fragments into others."""
    return (
        Stage(AbsorbInferredFragmentsPass(), "those of microbatches belong to the computations next to them"),
        Stage(MergeInferredFragmentsPass(merge_any_consumer=True), "the rest goes to what uses it"),
        Stage(MergeInferredFragmentsPass(merge_sideways=True), "or to what comes next on its mesh"),
    )


def _merge_again() -> Stage:
    return Stage(MergeInferredFragmentsPass(), "fragments of callers and of microbatches meet now")


@frozen
class MpmdOptimizePipeline(PassPipeline):
    """Order fragments as a schedule says, and merge and rematerialize them.

    Args:
        pipeline_schedule: The name of the schedule.
        fragment_schedule_rules: Rules that order fragments instead, as `FragmentScheduleRule` has them.
        fragment_merge_rules: Rules that merge fragments, as `FragmentMergeRule` has them.
        fragment_remat: Whether forward fragments are computed again for backward ones.
        merge_remat_fragments: Whether these copies are merged into the backward fragments.
        merge_after_scheduling: Whether inferred fragments are merged after scheduling only.
        merge_forward_with_backward: Whether a forward fragment and a backward one right behind it become one.
    """

    name: ClassVar[str] = "mpmd-optimize-pipeline"

    pipeline_schedule: str = "1F1B"
    fragment_schedule_rules: str = ""
    fragment_merge_rules: str = ""
    fragment_remat: bool = False
    merge_remat_fragments: bool = False
    merge_after_scheduling: bool = False
    merge_forward_with_backward: bool = False

    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""
        remat = Stage(
            RematFragmentPass(merge_remat_fragments=self.merge_remat_fragments), "it is known what comes next"
        )
        merging = (
            Stage(AbsorbInferredFragmentsPass(absorb_on_entry_point_function=True), "calls are inlined by now"),
            *merge_stages()[1:],
        )
        both = Stage(MergeForwardWithBackwardPass(), "last: nothing orders the two halves any more")
        merge_rules = Stage(RuleBasedMergePass(rules=self.fragment_merge_rules), "in the order of the schedule")
        return (
            self._schedule(),
            *((merge_rules,) if self.fragment_merge_rules else ()),
            *((remat,) if self.fragment_remat else ()),
            Stage(VerifyStageMergingPass(), "two units of one stage and microbatch have no order"),
            *(merging if self.merge_after_scheduling else ()),
            *((both,) if self.merge_forward_with_backward else ()),
        )

    def _schedule(self) -> Stage:
        if self.fragment_schedule_rules:
            return Stage(RuleBasedSchedulePass(rules=self.fragment_schedule_rules), "the rules of the user come first")
        return Stage(PipelineSchedulerPass(must_happen_before=self.pipeline_schedule), "orders the scheduling units")
