"""The passes of the loop emitter in their order, with the reason why each stands where it stands."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import builtin

from shardy_py.kernels.passes.base import KernelContext, KernelPass
from shardy_py.kernels.passes.canonicalize import Canonicalize
from shardy_py.kernels.passes.complex_to_standard import ComplexToStandard
from shardy_py.kernels.passes.convert_float import ConvertFloat
from shardy_py.kernels.passes.convert_index_type import ConvertIndexType
from shardy_py.kernels.passes.cse import CommonSubexpressions
from shardy_py.kernels.passes.erase_dead_functions import EraseDeadFunctions
from shardy_py.kernels.passes.expand_float import ExpandFloat
from shardy_py.kernels.passes.flatten_tensors import FlattenTensors
from shardy_py.kernels.passes.inline import Inline
from shardy_py.kernels.passes.licm import LoopInvariantCode
from shardy_py.kernels.passes.loops_to_scf import LoopsToScf
from shardy_py.kernels.passes.lower_shared import LowerShared
from shardy_py.kernels.passes.lower_tensors import LowerTensors
from shardy_py.kernels.passes.lower_to_scf import LowerToScf
from shardy_py.kernels.passes.merge_pointers import MergePointers
from shardy_py.kernels.passes.peel_loops import PeelLoops
from shardy_py.kernels.passes.propagate_slice_indices import PropagateSliceIndices
from shardy_py.kernels.passes.pure_calls import ConvertPureCalls
from shardy_py.kernels.passes.scf_to_cf import ScfToCf
from shardy_py.kernels.passes.signless import Signless
from shardy_py.kernels.passes.simplify_affine import LowerAffine, SimplifyAffine
from shardy_py.kernels.passes.simplify_arith import SimplifyArith
from shardy_py.kernels.passes.unroll_loops import UnrollLoops
from shardy_py.kernels.passes.unswitch_loops import UnswitchLoops
from shardy_py.kernels.passes.vectorize_loads_stores import VectorizeLoadsStores
from shardy_py.values import frozen


@frozen
class KernelStep:
    """A pass of a pipeline.

    Args:
        run: The pass.
        reason: Why it stands where it stands.
    """

    run: KernelPass
    reason: str


LOOP_PIPELINE: tuple[KernelStep, ...] = (
    KernelStep(SimplifyArith(), "bounds checks of single elements are decided by the ranges of their indices"),
    KernelStep(Canonicalize(), "index maps are folded before equal ones are looked for"),
    KernelStep(CommonSubexpressions(), "equal calls become one, so that their functions can be inlined"),
    KernelStep(EraseDeadFunctions(), "heroes and roots that the entry function emits itself are gone"),
    KernelStep(CommonSubexpressions(), "functions that are left are clean before they are inlined"),
    KernelStep(LowerShared(), "a tile is allocated once, before anything is inlined around it"),
    KernelStep(LowerToScf(), "predicated accesses become branches that later passes know"),
    KernelStep(Inline(), "functions that are called once need none of their own"),
    KernelStep(CommonSubexpressions(), "what callers and callees compute alike is computed once"),
    KernelStep(Canonicalize(), "loops lose what inlining showed to be constant"),
    KernelStep(CommonSubexpressions(), "folded maps may be equal"),
    KernelStep(PeelLoops(), "a last trip that is checked takes the check with it, while loops still have maps"),
    KernelStep(LoopsToScf(), "from here on loops are those of every compiler"),
    KernelStep(Signless(), "ops read the sign, types have none"),
    KernelStep(PropagateSliceIndices(), "functions know the buffers that they take while these are still tensors"),
    KernelStep(FlattenTensors(), "places in memory are one number, in which neighbours can be seen"),
    KernelStep(LoopInvariantCode(), "conditions that do not change leave the loop"),
    KernelStep(UnswitchLoops(), "then the loop has no branch around its body"),
    KernelStep(LoopInvariantCode(), "what the branch hid can leave the loop, too"),
    KernelStep(VectorizeLoadsStores(), "neighbours are read and written at once while the loop still shows them"),
    KernelStep(UnrollLoops(), "vectors are complete, the steps can stand side by side"),
    KernelStep(Canonicalize(), "indices of the steps are constants now"),
    KernelStep(CommonSubexpressions(), "the steps share what they have in common"),
    KernelStep(ConvertPureCalls(), "nothing looks for equal calls any more"),
    KernelStep(LowerTensors(), "elements are loaded and stored through pointers"),
    KernelStep(ComplexToStandard(), "processors know floats only"),
    KernelStep(MergePointers(), "pointers of one buffer are one argument, so that the others do not alias"),
    KernelStep(Canonicalize(), "what lowering left is folded"),
    KernelStep(CommonSubexpressions(), "places that are read and written are computed once"),
    KernelStep(SimplifyArith(), "bounds that hold for every thread are no branches"),
    KernelStep(SimplifyAffine(), "maps of what is not negative need no rounding down"),
    KernelStep(ConvertIndexType(), "indices have as few bits as the largest buffer allows"),
    KernelStep(LowerAffine(), "the maps that are left round down"),
    KernelStep(LoopInvariantCode(), "index arithmetic that does not change leaves loops"),
    KernelStep(CommonSubexpressions(), "maps shared divisions and products"),
    KernelStep(ConvertFloat(), "functions of short floats are those of f32"),
    KernelStep(ExpandFloat(), "functions that no processor has become rational ones"),
    KernelStep(ScfToCf(), "LLVM knows blocks and branches only"),
)


def run_passes(
    module: builtin.ModuleOp,
    steps: tuple[KernelStep, ...] = LOOP_PIPELINE,
    *,
    context: KernelContext | None = None,
    after_pass: Callable[[int, KernelPass, builtin.ModuleOp], None] | None = None,
) -> None:
    """Run passes over a module, in place.

    Args:
        module: The module.
        steps: The passes.
        context: What they may depend on; by default an H100.
        after_pass: Called after every pass with its number, the pass and the module.
    """
    known = context or KernelContext()
    for number, step in enumerate(steps):
        step.run.run(module, known)
        if after_pass is not None:
            after_pass(number, step.run, module)
