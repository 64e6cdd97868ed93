"""The entry function of updates in place: threads write the elements of the update, all others stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, builtin, func, tensor
from xdsl.ir import SSAValue

from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.dialect.arith_more import IndexCastUIOp
from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.dialect.syntax import INDEX
from shardy_py.kernels.elemental.builder import Scope
from shardy_py.kernels.elemental.epilogues import Epilogue, emit_epilogue
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.entry.arguments import EntryBuilder
from shardy_py.kernels.entry.scopes import called_element, entry_scope
from shardy_py.kernels.fusion.aliases import slices_of
from shardy_py.kernels.fusion.choose import Choice
from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
from shardy_py.kernels.fusion.in_place import in_place_updates
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.launch.in_place import in_place_map


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
    """Return the index in the operand of an element of the update, which begins where it fits."""
    starts = [called_element(functions, scope, value, parameters, ()) for value in update.operands[2:]]
    sizes = zip(shape_of(update.operands[0]), shape_of(update.operands[1]), strict=True)
    found = []
    for start, value, (size, width), place in zip(starts, update.operands[2:], sizes, index, strict=True):
        begin = _clamped(scope, start, value, size - width)
        found.append(scope.add(arith.AddiOp(place, begin)))
    return found


def _clamped(scope: Scope, start: SSAValue, value: Value, last: int) -> SSAValue:
    """Return a start as an index between 0 and the last one at which the update fits."""
    if last == 0:
        return scope.index(0)
    if element_type_of(value).startswith("ui"):
        wide = scope.add(IndexCastUIOp(start, INDEX))
        return scope.add(arith.MinUIOp(wide, scope.index(last)))
    wide = scope.add(arith.IndexCastOp(start, INDEX)) if not isinstance(start.type, builtin.IndexType) else start
    return scope.add(arith.MaxSIOp(scope.add(arith.MinSIOp(wide, scope.index(last))), scope.index(0)))
