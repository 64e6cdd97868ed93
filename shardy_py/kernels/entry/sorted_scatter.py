"""The entry function of scatters with sorted indices: a warp adds up windows while their index stays the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, builtin, func, vector
from xdsl.ir import Attribute, SSAValue

from shardy_py.indexing import Bound, IndexingMap, Interval, dim
from shardy_py.kernels.dialect.ops import LoopOp, YieldOp
from shardy_py.kernels.dialect.types import element_dtype, scalar_type
from shardy_py.kernels.elemental.functions import FunctionEmitter
from shardy_py.kernels.elemental.scope import Scope
from shardy_py.kernels.entry.arguments import EntryBuilder
from shardy_py.kernels.entry.scatter import Scattering, choose_values
from shardy_py.kernels.entry.scopes import entry_scope
from shardy_py.kernels.fusion.scatters import RootScatter
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.launch.scatters import SortedRows, element_map, index_map

Emit = Callable[[Scope, Sequence[SSAValue], SSAValue, SSAValue], SSAValue]
"""Treatment of an element, from a scope, its index, its place among those of the lane, what is carried."""


def sorted_scatter_entry(
    functions: FunctionEmitter, scatter: RootScatter, slices: Sequence[int], launch: Launch, rows: SortedRows
) -> func.FuncOp:
    """Return the entry function of a scatter whose warps go over sorted indices.

    Mirrors ``ScatterWithDistributedIndices`` of XLA.
    """
    entry = EntryBuilder(functions.fusion, launch, slices)
    return entry.finished((_Warp(functions, scatter, entry, rows).emit(),))


class _Warp:
    """The work of a warp: the window that is being added up, by its offsets, and the elements of a lane."""

    def __init__(self, functions: FunctionEmitter, scatter: RootScatter, entry: EntryBuilder, rows: SortedRows) -> None:
        self._functions = functions
        self._scatter = scatter
        self._entry = entry
        self._rows = rows
        self._scattering = Scattering(functions, scatter, entry.parameters)
        self._map = element_map(scatter, entry.launch, rows)

    def emit(self) -> SSAValue:
        """Emit the loops and return what is written."""
        rows = self._rows
        scope = entry_scope(self._functions, self._entry.block)
        initial = self._initial(scope)
        loop = LoopOp(index_map(self._scatter, self._entry.launch, rows), self._entry.ids, initial)
        scope.builder.insert(loop)
        body = entry_scope(self._functions, loop.body.block)
        step, inner = loop.body.block.args[:2]
        flat = body.add(arith.MuliOp(step, body.index(rows.indices_at_once)))
        number = body.add(arith.AddiOp(flat, inner))
        body.builder.insert(YieldOp(*self._index(body, loop.indices[0], number, loop.carried)))
        number, *offsets, is_inside, total, target = loop.outputs
        return self._written(scope, self._scattering.padded(scope, offsets), is_inside, total, target, number)

    def _initial(self, scope: Scope) -> list[SSAValue]:
        """Return offsets that no window has, and that there is none; nothing is added up."""
        root = self._functions.fusion.roots[0]
        count = self._rows.steps * self._rows.width
        element: Any = scalar_type(element_dtype(root))
        type_ = builtin.VectorType(element, [count])
        zeros = builtin.DenseIntOrFPElementsAttr.from_list(type_, [0] * count)
        nothing = _flag(scope, value=False)
        number = scope.index(0)
        offsets = [scope.index(-1)] * self._scattering.components
        return [number, *offsets, nothing, scope.add(arith.ConstantOp(zeros, type_)), *self._entry.outputs]

    def _index(
        self, scope: Scope, index: SSAValue, number: SSAValue, carried: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Process the next index: add its window to the total, or write that and begin anew where the index changes."""
        _, *before, was_inside, total, target = carried
        places = self._scattering.padded(scope, before)
        read = self._scattering.offsets(scope, index)
        changed = self._changed(scope, before, read)
        offsets = [scope.add(arith.SelectOp(changed, new, old)) for new, old in zip(read, before, strict=True)]
        new_places = self._scattering.padded(scope, offsets)
        is_later = scope.add(arith.CmpiOp(number, scope.index(0), "ne"))
        is_complete = scope.add(arith.AndIOp(is_later, scope.add(arith.AndIOp(changed, was_inside))))
        written = self._written(scope, places, is_complete, total, target, number)
        (is_inside,) = choose_values(
            scope, changed, [was_inside], lambda inner: [self._scattering.inside(inner, new_places)]
        )

        def total_of(inner: Scope) -> list[SSAValue]:
            return choose_values(
                inner,
                changed,
                lambda branch: [self._over_elements(branch, number, total, self._added)],
                lambda branch: [self._over_elements(branch, number, total, self._first)],
            )

        (added,) = choose_values(scope, is_inside, [total], total_of)
        return [number, *offsets, is_inside, added, written]

    def _changed(self, scope: Scope, before: Sequence[SSAValue], now: Sequence[SSAValue]) -> SSAValue:
        """Return whether an index is another one than that before."""
        changed = _flag(scope, value=False)
        # Mirrors XLA, which folds what is combined with the constant and leaves the constant.
        for number, (new, old) in enumerate(zip(now, before, strict=True)):
            differs = scope.add(arith.CmpiOp(old, new, "ne"))
            changed = scope.add(arith.OrIOp(changed, differs)) if number else differs
        return changed

    def _written(
        self,
        scope: Scope,
        places: Sequence[SSAValue],
        is_complete: SSAValue,
        total: SSAValue,
        target: SSAValue,
        number: SSAValue,
    ) -> SSAValue:
        """Update the operand by the total, if a window is complete and inside of the operand."""

        def write(inner: Scope, index: Sequence[SSAValue], at: SSAValue, carried: SSAValue) -> SSAValue:
            update = inner.add(vector.ExtractOp(total, [at], self._element))
            place = self._scattering.place(inner, places, index[1:])
            return self._scattering.write(inner, carried, place, update)

        (written,) = choose_values(
            scope, is_complete, [target], lambda branch: [self._over_elements(branch, number, target, write)]
        )
        return written

    @property
    def _element(self) -> Attribute:
        return scalar_type(element_dtype(self._functions.fusion.roots[0]))

    def _first(self, scope: Scope, index: Sequence[SSAValue], at: SSAValue, total: SSAValue) -> SSAValue:
        return scope.add(vector.InsertOp(self._scattering.update(scope, index), total, [at]))

    def _added(self, scope: Scope, index: Sequence[SSAValue], at: SSAValue, total: SSAValue) -> SSAValue:
        before = scope.add(vector.ExtractOp(total, [at], self._element))
        update = self._scattering.update(scope, index)
        return scope.add(vector.InsertOp(self._scattering.combined(scope.builder, before, update), total, [at]))

    def _over_elements(self, scope: Scope, number: SSAValue, carried: SSAValue, emit: Emit) -> SSAValue:
        """Emit the loops of a lane over its elements of a window."""
        loop = LoopOp(self._map, [*self._entry.ids, number], [carried])
        scope.builder.insert(loop)
        body = entry_scope(self._functions, loop.body.block)
        step, place = loop.body.block.args[:2]
        body.builder.insert(YieldOp(emit(body, loop.indices, self._at(body, step, place), loop.carried[0])))
        return loop.outputs[0]

    def _at(self, scope: Scope, step: SSAValue, place: SSAValue) -> SSAValue:
        rows = self._rows
        if rows.steps == 1:
            return place
        bounds = tuple(Bound(Interval(0, size - 1)) for size in (rows.steps, rows.width))
        (position,) = scope.apply(IndexingMap((dim(0) * rows.width + dim(1),), bounds), (step, place))
        return position


def _flag(scope: Scope, *, value: bool) -> SSAValue:
    return scope.add(arith.ConstantOp(builtin.IntegerAttr(-int(value), builtin.i1)))
