"""The passes of the loop emitter in their order, with the reason why each stands where it stands."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen
from xdsl.dialects import builtin

from shardy_py.emitters.passes.base import KernelContext, KernelPass
from shardy_py.emitters.passes.canonicalize import Canonicalize
from shardy_py.emitters.passes.cse import CommonSubexpressions
from shardy_py.emitters.passes.erase_dead_functions import EraseDeadFunctions
from shardy_py.emitters.passes.flatten_tensors import FlattenTensors
from shardy_py.emitters.passes.inline import Inline
from shardy_py.emitters.passes.licm import LoopInvariantCode
from shardy_py.emitters.passes.loops_to_scf import LoopsToScf
from shardy_py.emitters.passes.simplify_arith import SimplifyArith
from shardy_py.emitters.passes.unroll_loops import UnrollLoops
from shardy_py.emitters.passes.unswitch_loops import UnswitchLoops
from shardy_py.emitters.passes.vectorize_loads_stores import VectorizeLoadsStores


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
    KernelStep(Inline(), "functions that are called once need none of their own"),
    KernelStep(CommonSubexpressions(), "what callers and callees compute alike is computed once"),
    KernelStep(Canonicalize(), "loops lose what inlining showed to be constant"),
    KernelStep(CommonSubexpressions(), "folded maps may be equal"),
    KernelStep(LoopsToScf(), "from here on loops are those of every compiler"),
    KernelStep(FlattenTensors(), "places in memory are one number, in which neighbours can be seen"),
    KernelStep(LoopInvariantCode(), "conditions that do not change leave the loop"),
    KernelStep(UnswitchLoops(), "then the loop has no branch around its body"),
    KernelStep(LoopInvariantCode(), "what the branch hid can leave the loop, too"),
    KernelStep(VectorizeLoadsStores(), "neighbours are read and written at once while the loop still shows them"),
    KernelStep(CommonSubexpressions(), "places that became equal are computed once"),
    KernelStep(UnrollLoops(), "vectors are complete, the steps can stand side by side"),
    KernelStep(Canonicalize(), "indices of the steps are constants now"),
    KernelStep(CommonSubexpressions(), "the steps share what they have in common"),
    KernelStep(SimplifyArith(), "bounds that hold for every thread are no branches"),
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
