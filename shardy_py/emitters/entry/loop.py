"""The entry function of the loop emitter: every thread computes its elements one after the other."""

from __future__ import annotations

from xdsl.builder import Builder, InsertPoint
from xdsl.dialects import func, tensor

from shardy_py.emitters.dialect.ops import LoopOp, YieldOp
from shardy_py.emitters.elemental.builder import Scope
from shardy_py.emitters.elemental.functions import FunctionEmitter, call_element
from shardy_py.emitters.entry.arguments import Entry
from shardy_py.emitters.fusion.fusion import shape_of
from shardy_py.emitters.launch.grid import Launch, loop_map
from shardy_py.indexing import op_maps


def loop_entry(functions: FunctionEmitter, launch: Launch) -> func.FuncOp:
    """Return the entry function of a loop over the elements of the first root.

    Roots of another shape or layout are written at the index with the same place in memory.
    """
    fusion = functions.fusion
    entry = Entry(fusion, launch)
    shape = shape_of(fusion.roots[0])
    layout = fusion.layout_of(fusion.roots[0])
    loop = LoopOp(loop_map(launch, shape, layout), entry.ids, entry.outputs)
    entry.builder.insert(loop)
    scope = Scope(_NoFunction(functions), Builder(InsertPoint.at_end(loop.body.block)))
    written = []
    for root, target in zip(fusion.roots, loop.carried, strict=True):
        index = tuple(loop.indices)
        if (shape_of(root), fusion.layout_of(root)) != (shape, layout):
            same_place = op_maps.bitcast(shape, layout, shape_of(root), fusion.layout_of(root))
            index = tuple(scope.apply(same_place, index))
        owner = functions.partition.function_of(fusion.producer(root) or root)
        element = scope.find((root.id, index))
        if element is None:
            element = call_element(scope, owner, root, entry.parameters, index)
        written.append(scope.add(tensor.InsertOp(element, target, list(index))))
    scope.builder.insert(YieldOp(*written))
    return entry.finished(tuple(loop.outputs))


class _NoFunction:
    """The entry function computes no element itself."""

    def __init__(self, functions: FunctionEmitter) -> None:
        self.registry = functions.fusion.registry
        self.region_function = functions.region_function

    def outside(self, scope: Scope, value: object, indices: object) -> None:
        """Return nothing."""
