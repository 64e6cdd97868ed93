"""The pipeline of mesh inference."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.mpmd.passes.inference.assign_leaves import InferMeshAssignMeshFuncLeavesPass
from shardy_py.mpmd.passes.inference.cheapest_transfers import InferMeshCheapestTransfersPass
from shardy_py.mpmd.passes.inference.constraints import InferMeshAssignUsingInputOutputConstraintsPass
from shardy_py.mpmd.passes.inference.convert_reduce_ops import InferMeshConvertReduceOpsPass
from shardy_py.mpmd.passes.inference.finalize import InferMeshFinalizePass
from shardy_py.mpmd.passes.inference.rewrite import InferMeshRewriteUsingAnalysisPass
from shardy_py.mpmd.passes.inference.src_sets import InferMeshPopulateSrcSetPass
from shardy_py.mpmd.passes.inference.use_sets import InferMeshPopulateUseSetPass
from shardy_py.mpmd.passes.inference.validate import (
    DEFAULT_LIMIT,
    InferMeshValidateNoAdditionalTransfersNeededPass,
    InferMeshValidateSrcSetNotEmptyPass,
)
from shardy_py.transforms.run import PassPipeline, Stage
from shardy_py.values import frozen


@frozen
class InferMeshPipeline(PassPipeline):
    """Give every op a mesh.

    Args:
        infer_transfers: Whether transfers may be added that no name asks for.
        infer_cross_mesh_reductions: Whether reductions of values of several meshes become reductions over meshes.
        error_limit: The largest number of errors of one kind; -1 for all.
        max_clones: The number of fragments up to which an op is cloned into each.
        constraints: Pairs ``argument:result`` by number that are on one mesh.
        cheapest_transfers: Whether values move where the fewest bytes do, not as soon as another mesh uses them; it
            needs `infer_transfers`.
    """

    name: ClassVar[str] = "mpmd-infer-mesh-pipeline"

    infer_transfers: bool = False
    infer_cross_mesh_reductions: bool = False
    error_limit: int = DEFAULT_LIMIT
    max_clones: int = 1
    constraints: tuple[str, ...] = ()
    cheapest_transfers: bool = False

    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""
        reduces = self.infer_cross_mesh_reductions or self.infer_transfers
        checks = () if self.infer_transfers else (_src_check(self.error_limit),)
        use_checks = () if self.infer_transfers else (_use_check(self.error_limit),)
        return (
            Stage(InferMeshPopulateUseSetPass(), "from the assigns, the only ops that know where they are used"),
            Stage(InferMeshPopulateSrcSetPass(), "arguments can be had where they are used, so after the use sets"),
            *(_constraints(self.constraints) if self.constraints else ()),
            Stage(
                InferMeshConvertReduceOpsPass(
                    infer_cross_mesh_reductions=reduces, reduces_arguments=not self.cheapest_transfers
                ),
                "src sets mark the reductions",
            ),
            *checks,
            Stage(
                InferMeshAssignMeshFuncLeavesPass(infer_transfers=self.infer_transfers, error_limit=self.error_limit),
                "results and unused ops have no use sets yet",
            ),
            Stage(InferMeshPopulateUseSetPass(), "leaves are assigned now"),
            *use_checks,
            *((_cheapest(),) if self.cheapest_transfers and self.infer_transfers else ()),
            Stage(InferMeshRewriteUsingAnalysisPass(max_clones=self.max_clones), "all use sets are known"),
            Stage(InferMeshFinalizePass(infer_transfers=self.infer_transfers), "only assigns and unassigns are left"),
        )


def _constraints(pairs: tuple[str, ...]) -> tuple[Stage, ...]:
    item = InferMeshAssignUsingInputOutputConstraintsPass(constraints=pairs)
    return (Stage(item, "both sets are known, and neither end is assigned yet"),)


def _cheapest() -> Stage:
    return Stage(InferMeshCheapestTransfersPass(), "use sets and src sets say what each mesh needs and has")


def _src_check(limit: int) -> Stage:
    return Stage(InferMeshValidateSrcSetNotEmptyPass(error_limit=limit), "before leaves are assigned to what is empty")


def _use_check(limit: int) -> Stage:
    item = InferMeshValidateNoAdditionalTransfersNeededPass(error_limit=limit)
    return Stage(item, "with the use sets of the leaves")
