"""The entry function of the loop emitter: every thread computes its elements one after the other."""

from __future__ import annotations

from xdsl.dialects import func, tensor

from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.elemental.functions import FunctionEmitter, call_elements
from shardy_py.kernels.entry.arguments import EntryBuilder
from shardy_py.kernels.entry.scopes import entry_scope
from shardy_py.kernels.fusion.fusion import shape_of
from shardy_py.kernels.launch.grid import Launch, loop_map


def loop_entry(functions: FunctionEmitter, launch: Launch) -> func.FuncOp:
    """Return the entry function of a loop over the elements of the first root.

    Roots of another shape or layout are written at the index with the same place in memory.
    """
    fusion = functions.fusion
    entry = EntryBuilder(fusion, launch)
    first = fusion.roots[0]
    loop = LoopOp(loop_map(launch, shape_of(first), fusion.layout_of(first)), entry.ids, entry.outputs)
    entry.builder.insert(loop)
    scope = entry_scope(functions, loop.body.block)
    function = functions.partition.functions[0]
    elements = call_elements(scope, function, entry.parameters, tuple(loop.indices))
    element_of = dict(zip((root.id for root in function.roots), elements, strict=True))
    written = []
    for root, target in zip(fusion.roots, loop.carried, strict=True):
        index = scope.apply(fusion.same_place(first, root), loop.indices)
        written.append(scope.add(tensor.InsertOp(element_of[root.id], target, index)))
    scope.builder.insert(YieldOp(*written))
    return entry.finished(tuple(loop.outputs))
