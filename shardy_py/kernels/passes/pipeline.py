"""The passes over a kernel in their order and with their reasons, those of plugins, and verification after each."""

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.ir import Operation
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import Diagnostic
from shardy_py.guards.error_texts import describe_error
from shardy_py.kernels.passes.base import KernelPass
from shardy_py.kernels.passes.buffer_facts import MergePointers, PropagateSliceIndices
from shardy_py.kernels.passes.canonicalize import Canonicalize
from shardy_py.kernels.passes.complex_to_standard import ComplexToStandard
from shardy_py.kernels.passes.flatten_tensors import FlattenTensors
from shardy_py.kernels.passes.float_conversions import ConvertFloat, ExpandFloat
from shardy_py.kernels.passes.index_ranges import SimplifyArith
from shardy_py.kernels.passes.inline import ConvertPureCalls, EraseDeadFunctions, Inline
from shardy_py.kernels.passes.integer_arithmetic import ExpandIntegerPower, SafeIntegerArithmetic
from shardy_py.kernels.passes.integer_types import ConvertIndexType, Signless
from shardy_py.kernels.passes.loops import PeelLoops, UnrollLoops, UnswitchLoops
from shardy_py.kernels.passes.lower_tensors import LowerTensors
from shardy_py.kernels.passes.lower_to_scf import LoopsToScf, LowerToScf
from shardy_py.kernels.passes.redundancy import CommonSubexpressions, LoopInvariantCode
from shardy_py.kernels.passes.scf_to_cf import ScfToCf
from shardy_py.kernels.passes.shared_memory import LowerShared
from shardy_py.kernels.passes.simplify_affine import LowerAffine, SimplifyAffine
from shardy_py.kernels.passes.vectorize import VectorizeLoadsStores
from shardy_py.plugins import Registry
from shardy_py.transforms.plugin_passes import SubjectKind, insert_passes
from shardy_py.transforms.run import Stage
from shardy_py.values import frozen

LOOP_PIPELINE: tuple[Stage, ...] = (
    Stage(SimplifyArith(), "bounds checks of single elements are decided by the ranges of their indices"),
    Stage(Canonicalize(), "index maps are folded before equal ones are looked for"),
    Stage(CommonSubexpressions(), "equal calls become one, so that their functions can be inlined"),
    Stage(EraseDeadFunctions(), "heroes and roots that the entry function emits itself are gone"),
    Stage(CommonSubexpressions(), "functions that are left are clean before they are inlined"),
    Stage(LowerShared(), "a tile is allocated once, before anything is inlined around it"),
    Stage(LowerToScf(), "predicated accesses become branches that later passes know"),
    Stage(Inline(), "functions that are called once need none of their own"),
    Stage(CommonSubexpressions(), "what callers and callees compute alike is computed once"),
    Stage(Canonicalize(), "loops lose what inlining showed to be constant"),
    Stage(CommonSubexpressions(), "folded maps may be equal"),
    Stage(PeelLoops(), "a last trip that is checked takes the check with it, while loops still have maps"),
    Stage(LoopsToScf(), "from here on loops are those of every compiler"),
    Stage(Signless(), "ops read the sign, types have none"),
    Stage(PropagateSliceIndices(), "functions know the buffers that they take while these are still tensors"),
    Stage(FlattenTensors(), "places in memory are one number, in which neighbours can be seen"),
    Stage(LoopInvariantCode(), "conditions that do not change leave the loop"),
    Stage(UnswitchLoops(), "then the loop has no branch around its body"),
    Stage(LoopInvariantCode(), "what the branch hid can leave the loop, too"),
    Stage(VectorizeLoadsStores(), "neighbours are read and written at once while the loop still shows them"),
    Stage(UnrollLoops(), "vectors are complete, the steps can stand side by side"),
    Stage(Canonicalize(), "indices of the steps are constants now"),
    Stage(CommonSubexpressions(), "the steps share what they have in common"),
    Stage(ConvertPureCalls(), "nothing looks for equal calls any more"),
    Stage(LowerTensors(), "elements are loaded and stored through pointers"),
    Stage(ComplexToStandard(), "processors know floats only"),
    Stage(MergePointers(), "pointers of one buffer are one argument, so that the others do not alias"),
    Stage(Canonicalize(), "what lowering left is folded"),
    Stage(CommonSubexpressions(), "places that are read and written are computed once"),
    Stage(SimplifyArith(), "bounds that hold for every thread are no branches"),
    Stage(SimplifyAffine(), "maps of what is not negative need no rounding down"),
    Stage(ConvertIndexType(), "indices have as few bits as the largest buffer allows"),
    Stage(LowerAffine(), "the maps that are left round down"),
    Stage(LoopInvariantCode(), "index arithmetic that does not change leaves loops"),
    Stage(CommonSubexpressions(), "maps shared divisions and products"),
    Stage(SafeIntegerArithmetic(), "quotients and shifts that are marked so have a result everywhere"),
    Stage(ExpandIntegerPower(), "no processor has powers of integers"),
    Stage(ConvertFloat(), "functions of short floats are those of f32"),
    Stage(ExpandFloat(), "functions that no processor has become rational ones"),
    Stage(ScfToCf(), "LLVM knows blocks and branches only"),
)

_ON_HOST = {
    UnrollLoops: Stage(UnrollLoops(max_ops=0), "threads become vectors, of which a repeated body is more text"),
    LowerToScf: Stage(LowerToScf(keeps_reductions=True), "the steps of a reduction over lanes are those of a loop"),
}
HOST_PIPELINE: tuple[Stage, ...] = tuple(_ON_HOST.get(type(stage.item), stage) for stage in LOOP_PIPELINE)
"""The passes of a kernel for the host: loops of more than a few steps, and reductions over lanes, stay loops."""


@frozen(eq=False)
class KernelModuleCheck:
    """The check of a kernel's module after a pass of a plugin.

    Args:
        module: The module.
    """

    module: builtin.ModuleOp

    def is_untouched(self, own_names: frozenset[str]) -> bool:
        """Return False: a kernel is for one fusion, so that no pass of a plugin fails beside the point."""
        return False

    def find_problem(self) -> Diagnostic | None:
        """Return why the module does not verify, or None."""
        try:
            self.module.verify()
        except VerifyException as error:
            return Diagnostic("broken-module", str(error).splitlines()[0])
        except Exception as error:
            return Diagnostic("broken-module", f"verifying it fails with {describe_error(error)}")
        return None


KERNEL_MODULES = SubjectKind("kernel", KernelModuleCheck, has_one_pipeline=True)


def with_plugin_passes(passes: tuple[KernelPass, ...], registry: Registry) -> tuple[KernelPass, ...]:
    """Return passes over kernels with those of plugins: before the first of the name that they give, or after the last.

    Several beside the same one come in the order of their names.

    Raises:
        PluginError: a pass names none of the passes, or cannot be made.
    """
    return insert_passes(passes, registry.kernel_passes, registry, KERNEL_MODULES)


def verify_ops(root: Operation) -> None:
    """Verify an op and all ops in it.

    xDSL's own verification counts the blocks of a region once per block, which for the branches of a concatenate of
    thousands of operands takes longer than all passes.

    Raises:
        VerifyException: an op is not valid.
    """
    for op in root.walk():
        verify_op(op)


def verify_op(op: Operation) -> None:
    """Verify an op, and not the ops in it.

    Raises:
        VerifyException: it is not valid.
    """
    if _ends_block_of_several(op):
        _verify_branch(op)
    else:
        op.verify(verify_nested_ops=False)


def _ends_block_of_several(op: Operation) -> bool:
    block = op.parent
    region = None if block is None else block.parent
    return (
        block is not None and region is not None and block.last_op is op and region.first_block is not region.last_block
    )


def _verify_branch(op: Operation) -> None:
    """Verify the last op of a block in a region of several blocks."""
    assert op.parent is not None
    if not op.has_trait(IsTerminator):
        raise VerifyException(f"'{op.name}' ends a block, but is not a terminator")
    if any(target.parent is not op.parent.parent for target in op.successors):
        raise VerifyException(f"'{op.name}' leads to a block of another region")
    op.verify_()
