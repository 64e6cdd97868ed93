"""The pipeline that turns a program over several meshes into functions of single meshes.

Mirrors mpmd/transforms/export/export_pipeline.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.mpmd.passes.export.delays import DelayInferredFragmentsPass, DelayTransfersFromCpuPass
from shardy_py.mpmd.passes.export.donation import MarkAliasingAndDonationPass
from shardy_py.mpmd.passes.export.layouts import MarkInputOutputWithLayoutsPass
from shardy_py.mpmd.passes.export.lower_to_fragment_calls import LowerToFragmentCallsPass
from shardy_py.mpmd.passes.export.offloads import MarkOffloadedInputOutputPass
from shardy_py.mpmd.passes.export.reserved_memory import MarkFragmentReservedMemoryPass
from shardy_py.mpmd.passes.export.tokens import SinkCreateTokenIntoFragmentsPass
from shardy_py.mpmd.passes.export.validate import (
    ValidateNoBackwardDepsPass,
    ValidateNoInferredFragmentsPass,
    ValidateNoParamTransfersPass,
    ValidateNoReshardsPass,
)
from shardy_py.mpmd.passes.fragments.copy_constants import CopyConstantsPass
from shardy_py.mpmd.passes.fragments.dead_fragments import FragmentDcePass, FragmentDedupPass
from shardy_py.mpmd.passes.fragments.merge_passes import MergeInferredFragmentsPass
from shardy_py.mpmd.passes.fragments.move_transfers import SimplifyTransfersPass
from shardy_py.mpmd.passes.fragments.uniquify import UniquifyFunctionInputsOutputsPass
from shardy_py.transforms.canonicalize import CanonicalizePass, CsePass
from shardy_py.transforms.run import PassPipeline, Stage
from shardy_py.values import frozen


@frozen
class MpmdExportPipeline(PassPipeline):
    """Turn fragments into calls of functions, with what each may overwrite and where its buffers are.

    Args:
        copy_constant_creation_from_producer_to_consumer: Whether constants are made again where they are used.
        fail_on_reshard_only_fragments: Whether functions that only change shardings are an error.
        fail_on_backward_deps: Whether values that go to an earlier mesh are an error in forward-only programs.
        fail_on_inferred_fragments: Whether fragments that should have been merged are an error.
        fail_on_param_transfers: Whether transferred parameters are an error.
        param_transfer_pattern: What the name of a parameter contains.
        verbose_logging: Whether warnings list what each mesh will run.
    """

    name: ClassVar[str] = "mpmd-export-pipeline"

    copy_constant_creation_from_producer_to_consumer: bool = False
    fail_on_reshard_only_fragments: bool = False
    fail_on_backward_deps: bool = False
    fail_on_inferred_fragments: bool = True
    fail_on_param_transfers: bool = False
    param_transfer_pattern: str = ValidateNoParamTransfersPass().param_transfer_pattern
    verbose_logging: bool = False

    def stages(self) -> tuple[Stage, ...]:
        """Return the passes in order, with reasons."""
        return (
            *self._simplify(),
            *_mark_stages(),
            *self._validate(),
            Stage(LowerToFragmentCallsPass(verbose_logging=self.verbose_logging), "all attributes are there"),
            Stage(
                ValidateNoReshardsPass(fail_on_reshard_only_fragments=self.fail_on_reshard_only_fragments),
                "functions without ops show once they are functions",
            ),
            Stage(ValidateNoBackwardDepsPass(fail_on_backward_deps=self.fail_on_backward_deps), "calls have names"),
        )

    def _simplify(self) -> tuple[Stage, ...]:
        copies = Stage(CopyConstantsPass(), "what is copied need not be handed over")
        return (
            Stage(CsePass(), "what fragments compute twice"),
            *((copies,) if self.copy_constant_creation_from_producer_to_consumer else ()),
            Stage(CanonicalizePass(), "what folds once shardings are known"),
            Stage(SimplifyTransfersPass(), "copies for outputs whose shardings are equal are not needed"),
            Stage(FragmentDedupPass(), "one buffer for equal values"),
            Stage(FragmentDcePass(), "none for values without users"),
            Stage(UniquifyFunctionInputsOutputsPass(), "each output has a buffer of its own"),
            Stage(MergeInferredFragmentsPass(), "copies are made where the value is, if they can be"),
        )

    def _validate(self) -> tuple[Stage, ...]:
        transfers = ValidateNoParamTransfersPass(
            fail_on_param_transfers=self.fail_on_param_transfers,
            param_transfer_pattern=self.param_transfer_pattern,
        )
        inferred = ValidateNoInferredFragmentsPass(fail_on_inferred_fragments=self.fail_on_inferred_fragments)
        return (
            Stage(transfers, "arguments still have their names"),
            Stage(inferred, "all that can be merged is merged"),
        )


def _mark_stages() -> tuple[Stage, ...]:
    return (
        Stage(MarkOffloadedInputOutputPass(), "buffers on the host are not buffers of the device"),
        Stage(MarkInputOutputWithLayoutsPass(), "buffers of two layouts cannot take each other's place"),
        Stage(DelayInferredFragmentsPass(), "copies hold memory: as late as they can be"),
        Stage(DelayTransfersFromCpuPass(), "so do tensors that come from the host"),
        Stage(SinkCreateTokenIntoFragmentsPass(), "tokens have no buffers"),
        Stage(MarkAliasingAndDonationPass(), "the order is settled: the last use of each buffer is known"),
        Stage(MarkFragmentReservedMemoryPass(), "what is live is known"),
    )
