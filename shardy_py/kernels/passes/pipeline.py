"""The passes of the loop emitter in their order, with the reason why each stands where it stands."""

from __future__ import annotations

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
from shardy_py.transforms.run import Stage

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
    Stage(ConvertFloat(), "functions of short floats are those of f32"),
    Stage(ExpandFloat(), "functions that no processor has become rational ones"),
    Stage(ScfToCf(), "LLVM knows blocks and branches only"),
)
