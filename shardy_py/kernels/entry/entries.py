"""The entry function of every emitter, and those that are loops over elements: loop, concatenate, update in place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, builtin, func, tensor
from xdsl.ir import SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
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
from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
from shardy_py.kernels.fusion.in_place import in_place_updates
from shardy_py.kernels.launch.grid import Launch, loop_map
from shardy_py.kernels.launch.launches import in_place_map, joined_input_map, joined_output_maps
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

    Raises:
        UnsupportedError: the emitter has none.
    """
    if choice.emitter is not None:
        entry: func.FuncOp = choice.emitter.entry(functions, launch)
        return entry
    match choice.kind:
        case EmitterKind.LOOP:
            return loop_entry(functions, launch)
        case EmitterKind.TRANSPOSE:
            tiles = transpose_tiles(choice, launch)
            if isinstance(tiles, PackedTiles):
                return packed_transpose_entry(functions, choice, tiles)
            return tiled_transpose_entry(functions, choice, tiles)
        case EmitterKind.CONCATENATE:
            return concatenate_entry(functions, choice, launch)
        case EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE:
            return in_place_entry(functions, choice, launch)
        case EmitterKind.REDUCTION:
            return reduction_entry(functions, choice, launch, plan_reduction(functions.fusion, choice, device, launch))
        case EmitterKind.SCATTER:
            slices = slices_of(functions.fusion, choice)
            rows = sorted_rows(functions.fusion, device)
            if rows is not None and rows.per_warp > 1:
                return sorted_scatter_entry(functions, slices, launch, rows)
            return scatter_entry(functions, slices, launch, update_map(functions.fusion, launch, rows))
    message = f"the fusion is for the emitter {choice.kind.value}: {choice.reason}"
    hint = "emitter, launch and functions are known; the entry function is not"
    raise UnsupportedError(Diagnostic("no-entry-function", message, hint=hint))


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


def concatenate_entry(functions: FunctionEmitter, choice: Choice, launch: Launch) -> func.FuncOp:
    """Return the entry function of a concatenate, whose epilogue computes the root from the elements of each operand.

    Mirrors ``ConcatenateFusion`` of XLA.
    """
    fusion = functions.fusion
    (hero,), (root,) = choice.heroes, fusion.roots
    assert hero is not None
    entry = EntryBuilder(fusion, launch)
    epilogue = Epilogue.at_root(hero.results[0], root)
    name = emit_epilogue(functions, epilogue)
    read = joined_input_map(fusion, hero, launch)
    outputs = list(entry.outputs)
    for operand, map_ in zip(hero.operands, joined_output_maps(fusion, hero, root, launch), strict=True):
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


def in_place_entry(functions: FunctionEmitter, choice: Choice, launch: Launch) -> func.FuncOp:
    """Return the entry function of dynamic updates of parameters in their own memory.

    Mirrors ``InPlaceDynamicUpdateSliceFusion`` of XLA.
    """
    fusion = functions.fusion
    entry = EntryBuilder(fusion, launch, slices_of(fusion, choice))
    updates = in_place_updates(fusion)
    loop = LoopOp(in_place_map(fusion, launch), entry.ids, entry.outputs)
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
