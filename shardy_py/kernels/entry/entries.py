"""The entry function of every emitter, and those that are loops over elements: loop, concatenate, update in place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, builtin, func, tensor
from xdsl.ir import SSAValue

from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.dialect.arith_and_llvm import IndexCastUIOp
from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.elemental.epilogues import Epilogue, call_epilogue, emit_epilogue
from shardy_py.kernels.elemental.functions import FunctionEmitter, call_elements
from shardy_py.kernels.elemental.scope import Scope
from shardy_py.kernels.entry.arguments import EntryBuilder
from shardy_py.kernels.entry.reduction import reduction_entry
from shardy_py.kernels.entry.scatter import scatter_entry
from shardy_py.kernels.entry.scopes import called_element, entry_scope
from shardy_py.kernels.entry.sorted_scatter import sorted_scatter_entry
from shardy_py.kernels.entry.transpose import packed_transpose_entry, tiled_transpose_entry
from shardy_py.kernels.fusion.choose import Choice, EmitterKind, slices_of
from shardy_py.kernels.fusion.fusion import IterationSpace, element_type_of, shape_of
from shardy_py.kernels.fusion.reductions import RootReductions
from shardy_py.kernels.fusion.scatters import RootScatter
from shardy_py.kernels.fusion.transposes import RootTransposes
from shardy_py.kernels.launch.grid import Launch, loop_map
from shardy_py.kernels.launch.launches import joined_output_maps
from shardy_py.kernels.launch.packed import PackedTiles
from shardy_py.kernels.launch.reductions import plan_reduction
from shardy_py.kernels.launch.scatters import sorted_rows, update_map
from shardy_py.kernels.launch.transposes import transpose_tiles


def entry_function(functions: FunctionEmitter, choice: Choice, launch: Launch, device: DeviceSpec) -> func.FuncOp:
    """Return the entry function of a kernel.

    Args:
        functions: The functions of the fusion.
        choice: The emitter.
        launch: The grid.
        device: The device.
    """
    form = choice.form
    match form:
        case RootTransposes():
            tiles = transpose_tiles(form, launch)
            if isinstance(tiles, PackedTiles):
                return packed_transpose_entry(functions, form, tiles)
            return tiled_transpose_entry(functions, form, tiles)
        case RootReductions():
            return reduction_entry(functions, form, launch, plan_reduction(form, device, launch))
        case RootScatter():
            slices, rows = slices_of(functions.fusion, choice), sorted_rows(form, device)
            if rows is not None and rows.per_warp > 1:
                return sorted_scatter_entry(functions, form, slices, launch, rows)
            return scatter_entry(functions, form, slices, launch, update_map(form, launch, rows))
        case IterationSpace():
            map_ = loop_map(launch, form.shape, form.layout)
            if choice.kind is EmitterKind.CONCATENATE:
                return concatenate_entry(functions, choice, launch, map_)
            if choice.kind is EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE:
                return in_place_entry(functions, choice, launch, map_)
            return loop_entry(functions, launch)
        case _:
            entry: func.FuncOp = form.entry(functions, launch)
            return entry


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


def concatenate_entry(functions: FunctionEmitter, choice: Choice, launch: Launch, read: IndexingMap) -> func.FuncOp:
    """Return the entry function of a concatenate, whose epilogue computes the root from the elements of each operand.

    Mirrors ``ConcatenateFusion`` of XLA.

    Args:
        functions: The functions of the fusion.
        choice: The emitter.
        launch: The grid.
        read: The map from threads, blocks and the loop to the index in an operand.
    """
    fusion = functions.fusion
    (hero,), (root,) = choice.heroes, fusion.roots
    assert hero is not None
    entry = EntryBuilder(fusion, launch)
    epilogue = Epilogue.at_root(hero.results[0], root)
    name = emit_epilogue(functions, epilogue)
    outputs = list(entry.outputs)
    for operand, map_ in zip(hero.operands, joined_output_maps(fusion, hero, root, read), strict=True):
        loop = LoopOp(map_, entry.ids, outputs)
        entry.builder.insert(loop)
        scope = entry_scope(functions, loop.body.block)
        index = scope.apply(read, entry.ids, loop.symbols)
        element = called_element(functions, scope, operand, entry.parameters, index)
        root_elements = call_epilogue(scope, name, epilogue, entry.parameters, loop.indices, [element])
        scope.builder.insert(
            YieldOp(scope.add(tensor.InsertOp(root_elements[root], loop.carried[0], list(loop.indices))))
        )
        outputs = list(loop.outputs)
    return entry.finished(tuple(outputs))


def in_place_entry(functions: FunctionEmitter, choice: Choice, launch: Launch, map_: IndexingMap) -> func.FuncOp:
    """Return the entry function of dynamic updates of parameters in their own memory.

    Mirrors ``InPlaceDynamicUpdateSliceFusion`` of XLA.

    Args:
        functions: The functions of the fusion.
        choice: The emitter, with the updates as heroes.
        launch: The grid.
        map_: The map from threads, blocks and the loop to the index in the updates.
    """
    fusion = functions.fusion
    entry = EntryBuilder(fusion, launch, slices_of(fusion, choice))
    updates = [update for update in choice.heroes if update is not None]
    loop = LoopOp(map_, entry.ids, entry.outputs)
    entry.builder.insert(loop)
    scope = entry_scope(functions, loop.body.block)
    written = []
    for root, update, target in zip(fusion.roots, updates, loop.carried, strict=True):
        emit_epilogue(functions, Epilogue.at_root(update.results[0], root))
        index = _shifted(functions, scope, update, entry.parameters, loop.indices)
        element = called_element(functions, scope, update.operands[1], entry.parameters, loop.indices)
        place = scope.apply(fusion.same_place(update.results[0], root), index)
        written.append(scope.add(tensor.InsertOp(element, target, place)))
    scope.builder.insert(YieldOp(*written))
    return entry.finished(tuple(loop.outputs))


def _shifted(
    functions: FunctionEmitter, scope: Scope, update: Op, parameters: Sequence[SSAValue], index: Sequence[SSAValue]
) -> list[SSAValue]:
    """Return the index in the operand of an element of the update, with start indices clamped so that it fits."""
    starts = [called_element(functions, scope, value, parameters, ()) for value in update.operands[2:]]
    sizes = zip(shape_of(update.operands[0]), shape_of(update.operands[1]), strict=True)
    shifted = []
    for start, value, (size, width), place in zip(starts, update.operands[2:], sizes, index, strict=True):
        begin = _clamped(scope, start, value, size - width)
        shifted.append(scope.add(arith.AddiOp(place, begin)))
    return shifted


def _clamped(scope: Scope, start: SSAValue, value: Value, last: int) -> SSAValue:
    """Return a start as an index between 0 and the last one at which the update fits."""
    if last == 0:
        return scope.index(0)
    if element_type_of(value).startswith("ui"):
        wide = scope.add(IndexCastUIOp(start, INDEX))
        return scope.add(arith.MinUIOp(wide, scope.index(last)))
    wide = scope.add(arith.IndexCastOp(start, INDEX)) if not isinstance(start.type, builtin.IndexType) else start
    return scope.add(arith.MaxSIOp(scope.add(arith.MinSIOp(wide, scope.index(last))), scope.index(0)))
