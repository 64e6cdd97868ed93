"""The entry function of scatters with sorted indices: a warp adds up windows while their index stays the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith, builtin, func, vector
from xdsl.ir import Attribute, SSAValue

from shardy_py.emitters.dialect.ops import LoopOp, YieldOp
from shardy_py.emitters.dialect.types import element_dtype, scalar_type
from shardy_py.emitters.elemental.builder import Scope
from shardy_py.emitters.elemental.functions import FunctionEmitter
from shardy_py.emitters.entry.arguments import Entry
from shardy_py.emitters.entry.scatter import Scattering, choose_values
from shardy_py.emitters.entry.scopes import entry_scope
from shardy_py.emitters.launch.grid import Launch
from shardy_py.emitters.launch.scatters import SortedRows, element_map, index_map
from shardy_py.indexing import Bound, IndexingMap, Interval, dim

Emit = Callable[[Scope, Sequence[SSAValue], SSAValue, SSAValue], SSAValue]
"""Treatment of an element, from a scope, its index, its place among those of the lane, what is carried."""


def sorted_scatter_entry(
    functions: FunctionEmitter, slices: Sequence[int], launch: Launch, rows: SortedRows
) -> func.FuncOp:
    """Return the entry function of a scatter whose warps go over sorted indices.

    Mirrors ``ScatterWithDistributedIndices`` of XLA.
    """
    entry = Entry(functions.fusion, launch, slices)
    return entry.finished((_Warp(functions, entry, rows).emit(),))


class _Warp:
    """The work of a warp: the window that is being added up, by its offsets, and the elements of a lane."""

    def __init__(self, functions: FunctionEmitter, entry: Entry, rows: SortedRows) -> None:
        self._functions = functions
        self._entry = entry
        self._rows = rows
        self._scattering = Scattering(functions, entry.parameters)
        self._rank = len(self._scattering.window)
        self._map = element_map(functions.fusion, entry.launch, rows)

    def emit(self) -> SSAValue:
        """Emit the loops and return what is written."""
        fusion, rows = self._functions.fusion, self._rows
        scope = entry_scope(self._functions, self._entry.block)
        initial = self._initial(scope)
        loop = LoopOp(index_map(fusion, self._entry.launch, rows), self._entry.ids, initial)
        scope.builder.insert(loop)
        body = entry_scope(self._functions, loop.body.block)
        step, inner = loop.body.block.args[:2]
        flat = body.add(arith.MuliOp(step, body.index(rows.indices_at_once)))
        number = body.add(arith.AddiOp(flat, inner))
        body.builder.insert(YieldOp(*self._index(body, loop.indices[0], number, loop.carried)))
        *offsets, is_inside, total, target = loop.outputs
        zero = scope.index(0)
        return self._written(scope, offsets, is_inside, total, target, zero)

    def _initial(self, scope: Scope) -> list[SSAValue]:
        """Return offsets that no window has, and that there is none; nothing is added up."""
        root = self._functions.fusion.roots[0]
        count = self._rows.steps * self._rows.width
        element: Any = scalar_type(element_dtype(root))
        type_ = builtin.VectorType(element, [count])
        zeros = builtin.DenseIntOrFPElementsAttr.from_list(type_, [0] * count)
        offsets = [scope.index(-1) for _ in range(self._rank)]
        nothing = scope.add(arith.ConstantOp(builtin.IntegerAttr(0, builtin.i1)))
        return [*offsets, nothing, scope.add(arith.ConstantOp(zeros, type_)), *self._entry.outputs]

    def _index(
        self, scope: Scope, index: SSAValue, number: SSAValue, carried: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Take the next index: add its window up, or write what there is and begin anew."""
        *before, was_inside, total, target = carried
        offsets = self._scattering.offsets(scope, index)
        pairs = list(zip(offsets, before, strict=True))[: self._scattering.components]
        changed, *more = [scope.add(arith.CmpiOp(new, old, "ne")) for new, old in pairs]
        for change in more:
            changed = scope.add(arith.OrIOp(changed, change))

        def begin(inner: Scope) -> list[SSAValue]:
            written = self._written(inner, before, was_inside, total, target, number)
            is_inside = self._scattering.inside(inner, offsets)
            return [is_inside, self._over_elements(inner, number, total, self._first), written]

        def go_on(inner: Scope) -> list[SSAValue]:
            added = choose_values(
                inner, was_inside, [total], lambda own: [self._over_elements(own, number, total, self._added)]
            )
            return [was_inside, *added, target]

        return [*offsets, *choose_values(scope, changed, go_on, begin)]

    def _written(
        self,
        scope: Scope,
        offsets: Sequence[SSAValue],
        is_inside: SSAValue,
        total: SSAValue,
        target: SSAValue,
        number: SSAValue,
    ) -> SSAValue:
        """Update the operand by what was added up, if its window is inside."""
        count = self._scattering.components
        places = [*offsets[:count], *(scope.index(0) for _ in offsets[count:])]

        def write(inner: Scope, index: Sequence[SSAValue], at: SSAValue, carried: SSAValue) -> SSAValue:
            update = inner.add(vector.ExtractOp(total, [at], self._element))
            place = self._scattering.place(inner, places, index[1:])
            return self._scattering.write(inner, carried, place, update)

        return choose_values(scope, is_inside, [target], lambda own: [self._over_elements(own, number, target, write)])[
            0
        ]

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
        (found,) = scope.apply(IndexingMap((dim(0) * rows.width + dim(1),), bounds), (step, place))
        return found
