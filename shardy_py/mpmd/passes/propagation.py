"""Shardings of programs over several meshes: within fragments, and through transfers between equal meshes.

Mirrors mpmd/transforms/sharding_propagation/sharding_propagation_pipeline.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.mpmd.passes.fragments.uniquify import UniquifyFunctionInputsOutputsPass
from shardy_py.mpmd.passes.named.fold_splats import FoldSplatsPass
from shardy_py.mpmd.passes.named.simplify_ops import SimplifyOpsPass
from shardy_py.mpmd.passes.shardings.extract_reshards import ExtractReshardsFromInterMeshTransfersPass
from shardy_py.mpmd.passes.shardings.sharded_types import ConvertSdyShardingsToMpmdTypesPass, SimplifyProgramPass
from shardy_py.mpmd.passes.shardings.user_shardings import EnforceUserShardingsPass, PopulateUnreducedOutShardingPass
from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.run import PassPipeline, Stage
from shardy_py.values import NoFields


class MpmdShardingPropagationPipeline(NoFields, PassPipeline):
    """Propagate shardings over the whole program, and move them into types: fragments are data flow."""

    name: ClassVar[str] = "mpmd-sharding-propagation-pipeline"

    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""
        uniquify = UniquifyFunctionInputsOutputsPass(use_transfer_instead_of_fragment=True)
        return (
            Stage(uniquify, "each output can have a sharding of its own"),
            *PropagationPipeline(avoid_export_for_partitioning=True).stages(),
            Stage(PopulateUnreducedOutShardingPass(), "propagation does not hand on unreduced axes"),
            Stage(EnforceUserShardingsPass(), "what the user wants wins over what was propagated"),
            Stage(ExtractReshardsFromInterMeshTransfersPass(), "shardings of both ends are settled"),
            Stage(ConvertSdyShardingsToMpmdTypesPass(), "each function gets the shardings of what it is called with"),
            Stage(
                FoldSplatsPass(identities=True), "nothing in a fragment has a sharding any more that folding would lose"
            ),
            Stage(SimplifyOpsPass(), "fragments that were merged bring constants and their users together"),
            Stage(SimplifyProgramPass(), "copies that no sharding needed go again"),
        )
