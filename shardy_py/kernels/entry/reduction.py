"""The entry function of the reduction emitter.

Threads reduce elements of their own, then warps combine those of their lanes, through a tile of shared memory where
several warps, or all warps of a column, have parts of one result. Mirrors XLA's
`xla/backends/gpu/codegen/emitters/reduction.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects import builtin, func, scf, tensor, vector
from xdsl.ir import Attribute, Region, SSAValue

from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.dialect.memory_ops import (
    AllocateSharedOp,
    PredicatedExtractOp,
    PredicatedInsertOp,
    ShuffleReduceOp,
    SyncThreadsOp,
)
from shardy_py.kernels.dialect.ops import LoopOp, PureCallOp
from shardy_py.kernels.dialect.types import element_dtype
from shardy_py.kernels.elemental.epilogues import Epilogue, call_epilogue, emit_epilogue
from shardy_py.kernels.elemental.functions import FunctionEmitter, read_element
from shardy_py.kernels.elemental.scalars import make_constant
from shardy_py.kernels.elemental.scope import Indices, Scope
from shardy_py.kernels.entry.arguments import EntryBuilder
from shardy_py.kernels.entry.reduced_values import Values, by_reduction, emit_loop, read_tiles, scalar_of, write_tiles
from shardy_py.kernels.entry.scopes import called_element, entry_scope, loop_over_symbols
from shardy_py.kernels.fusion.combiners import starts_of
from shardy_py.kernels.fusion.reductions import RootReductions
from shardy_py.kernels.launch.grid import BL_Z, TH_X, Launch
from shardy_py.kernels.launch.reduction_maps import ReductionMaps, SharedTile, Strip, reduction_maps
from shardy_py.kernels.launch.reductions import ReductionPlan
from shardy_py.values import frozen


@frozen(eq=False)
class RootGroup:
    """Roots that blocks with one number along z write.

    Args:
        number: That number.
        reductions: The heroes that are reductions.
        roots: The numbers of the roots that are computed from them.
        sides: The numbers of the other roots, which have as many elements as the operand of a reduction.
    """

    number: int
    reductions: tuple[Op, ...]
    roots: tuple[int, ...]
    sides: tuple[int, ...]


def groups_of(reductions: RootReductions) -> Iterator[RootGroup]:
    """Yield the groups of roots of a reduction."""
    for number, members in enumerate(reductions.groups):
        heroes = {member: hero for member in members if (hero := reductions.heroes.get(member)) is not None}
        sides = tuple(member for member in members if member not in heroes)
        yield RootGroup(number, tuple(dict.fromkeys(heroes.values())), tuple(heroes), sides)


def reduction_entry(
    functions: FunctionEmitter, reductions: RootReductions, launch: Launch, plan: ReductionPlan
) -> func.FuncOp:
    """Return the entry function of a reduction.

    Args:
        functions: The functions of the fusion.
        reductions: The reductions of the roots.
        launch: The grid.
        plan: The distribution of the reductions over it.
    """
    entry = EntryBuilder(functions.fusion, launch)
    groups = list(groups_of(reductions))
    scope = entry_scope(functions, entry.block)
    maps = reduction_maps(plan, launch)

    def emit(scope: Scope, group: RootGroup) -> list[SSAValue]:
        return _GroupEmitter(functions, entry, maps, group, combines_lanes_first=plan.form.is_row).emit(scope)

    if len(groups) == 1:
        return entry.finished(tuple(emit(scope, groups[0])))
    return entry.finished(tuple(_switch(scope, entry, groups, emit)))


def _switch(
    scope: Scope, entry: EntryBuilder, groups: Sequence[RootGroup], emit: Callable[[Scope, RootGroup], list[SSAValue]]
) -> Sequence[SSAValue]:
    """Emit every group for the blocks with its number along z; the first is the default."""
    regions = []
    for group in groups:
        with scope.block() as (inner, block):
            inner.builder.insert(scf.YieldOp(*emit(inner, group)))
        regions.append(Region(block))
    cases = builtin.DenseArrayBase.from_list(builtin.i64, [group.number for group in groups[1:]])
    types = [output.type for output in entry.outputs]
    op = scf.IndexSwitchOp(entry.ids[BL_Z], cases, regions[0], regions[1:], types)
    scope.builder.insert(op)
    return op.results


class _GroupEmitter:
    """Emits what the blocks of a group of roots do."""

    def __init__(
        self,
        functions: FunctionEmitter,
        entry: EntryBuilder,
        maps: ReductionMaps,
        group: RootGroup,
        *,
        combines_lanes_first: bool,
    ) -> None:
        self._functions = functions
        self._fusion = functions.fusion
        self._entry = entry
        self._maps = maps
        self._group = group
        self._combines_lanes_first = combines_lanes_first

    def emit(self, scope: Scope) -> list[SSAValue]:
        """Return the results after the group's roots were written."""
        inits = {op: self._start(scope, op) for op in self._group.reductions}
        if self._maps.strip is not None:
            return self._by_one_thread(scope, self._maps.strip, inits)
        outputs, values = self._per_thread(scope, inits)
        if self._combines_lanes_first:
            values = self._over_lanes(scope, values)
        if self._maps.tile is None:
            return self._written(scope, values, outputs, ())
        return self._through_shared_memory(scope, self._maps.tile, values, outputs, inits)

    def _start(self, scope: Scope, op: Op) -> list[SSAValue]:
        """Return the values with which each thread begins: neutral ones where initial values have to count once."""
        values = op.operands[len(op.results) :]
        return [
            self._element(scope, value, ()) if start is None else scope.add(make_constant(start, element_dtype(value)))
            for start, value in zip(starts_of(self._fusion, op) or (), values, strict=True)
        ]

    def _completed(self, scope: Scope, op: Op, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Return what a reduction gives: combined with the initial values, where threads began with neutral ones."""
        if all(start is None for start in starts_of(self._fusion, op) or ()):
            return values
        inits = [self._element(scope, value, ()) for value in op.operands[len(op.results) :]]
        return self._combined(scope, op, inits, values)

    def _element(self, scope: Scope, value: Value, indices: Indices) -> SSAValue:
        parameters = self._entry.parameters
        if value.id in self._fusion.root_ids & self._fusion.parameter_ids:
            return read_element(scope, parameters[self._fusion.parameter_numbers[value.id]], indices)
        return called_element(self._functions, scope, value, parameters, indices)

    def _per_thread(self, scope: Scope, inits: Values) -> tuple[list[SSAValue], Values]:
        """Emit the loop in which a thread reduces its elements and writes other roots.

        Returns:
            The results after that, and what the thread reduced.
        """
        flat = [value for values in inits.values() for value in values]
        if self._maps.vector > 1:
            flat = [scope.add(vector.BroadcastOp(value, self._vector_type(value))) for value in flat]
        count = len(self._entry.outputs)

        def step(inner: Scope, loop: LoopOp) -> list[SSAValue]:
            carried = by_reduction(inits, loop.carried[count:])
            reduced = [value for op in self._group.reductions for value in self._step(inner, op, carried[op], loop)]
            return [*self._sides_written(inner, loop), *reduced]

        outputs = emit_loop(scope, self._maps.input, self._entry.ids, [*self._entry.outputs, *flat], step)
        return outputs[:count], by_reduction(inits, outputs[count:])

    def _by_one_thread(self, scope: Scope, strip: Strip, inits: Values) -> list[SSAValue]:
        """Reduce into partial results in memory, combine those of each result, write the roots; return the results."""
        flat = [value for values in inits.values() for value in values]
        types = [builtin.TensorType(value.type, [strip.width * strip.parts]) for value in flat]
        tiles = [scope.add(AllocateSharedOp(type_)) for type_ in types]
        count = len(self._entry.outputs)

        def begin(inner: Scope, loop: LoopOp) -> list[SSAValue]:
            return write_tiles(inner, flat, loop.carried, loop.indices)

        def reduce(inner: Scope, loop: LoopOp) -> list[SSAValue]:
            place = loop.symbols[-1:]
            before = by_reduction(inits, read_tiles(inner, loop.carried[count:], place))
            values = [
                value for op in inits for value in self._next(inner, op, before[op], self._index(inner, op, loop))
            ]
            return [*self._sides_written(inner, loop), *write_tiles(inner, values, loop.carried[count:], place)]

        def finish(inner: Scope, loop: LoopOp) -> list[SSAValue]:
            values = self._over_parts(inner, strip, inits, tiles, loop.symbols)
            return self._written(inner, values, loop.carried, loop.symbols)

        tiles = emit_loop(scope, strip.elements, (), tiles, begin)
        reduced = emit_loop(scope, self._maps.input, self._entry.ids, [*self._entry.outputs, *tiles], reduce)
        outputs, tiles = reduced[:count], reduced[count:]
        if self._maps.output.ranges:
            return emit_loop(scope, strip.results, (), outputs, finish)
        values = self._over_parts(scope, strip, inits, tiles, [scope.index(0)])
        return self._written(scope, values, outputs, ())

    def _over_parts(
        self, scope: Scope, strip: Strip, inits: Values, tiles: Sequence[SSAValue], result: Sequence[SSAValue]
    ) -> Values:
        """Combine the partial results of a result, one after the other."""
        if strip.parts == 1:
            return by_reduction(inits, read_tiles(scope, tiles, result))

        def combine(inner: Scope, loop: LoopOp) -> list[SSAValue]:
            read, before = read_tiles(inner, tiles, loop.indices), by_reduction(inits, loop.carried)
            parts = by_reduction(inits, read)
            return [value for op in inits for value in self._combined(inner, op, before[op], parts[op])]

        flat = [value for values in inits.values() for value in values]
        return by_reduction(inits, emit_loop(scope, strip.parts_of_result, result, flat, combine))

    def _step(self, scope: Scope, op: Op, carried: Sequence[SSAValue], loop: LoopOp) -> list[SSAValue]:
        """Combine what was reduced with the next element."""
        last = loop.symbols[-1]
        index = self._index(scope, op, loop)
        combined = self._next(scope, op, [self._lane(scope, value, last) for value in carried], index)
        return [
            scope.add(vector.InsertOp(value, into, [last])) if self._maps.vector > 1 else value
            for value, into in zip(combined, carried, strict=True)
        ]

    def _index(self, scope: Scope, op: Op, loop: LoopOp) -> Indices:
        """Return the index of the element of a step."""
        return tuple(scope.apply(self._maps.input_in(self._fusion, op.operands[0]), loop.indices))

    def _next(self, scope: Scope, op: Op, before: Sequence[SSAValue], index: Indices) -> Sequence[SSAValue]:
        """Combine values with the element at an index."""
        elements = [self._element(scope, value, index) for value in op.operands[: len(op.results)]]
        return self._combined(scope, op, before, elements)

    def _combined(
        self, scope: Scope, op: Op, values: Sequence[SSAValue], others: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        combined = PureCallOp(self._combiner(op), [*values, *others], [value.type for value in values])
        scope.builder.insert(combined)
        return combined.results

    def _sides_written(self, scope: Scope, loop: LoopOp) -> list[SSAValue]:
        """Write the roots that are not reductions, and return the results."""
        results = list(loop.carried[: len(self._entry.outputs)])
        elements = []
        for number in self._group.sides:
            root = self._fusion.roots[number]
            index = tuple(scope.apply(self._maps.input_in(self._fusion, root), loop.indices))
            elements.append((number, self._element(scope, root, index), index))
            emit_epilogue(self._functions, Epilogue.at_root(root, root))
        for number, element, index in elements:
            results[number] = scope.add(tensor.InsertOp(element, results[number], list(index)))
        return results

    def _through_shared_memory(
        self, scope: Scope, tile: SharedTile, values: Values, outputs: Sequence[SSAValue], inits: Values
    ) -> list[SSAValue]:
        """Let warps exchange what they reduced, combine that, write the roots and return the results."""
        tiles = self._shared(scope, tile, values)
        thread = self._entry.ids[TH_X]

        def finish(inner: Scope, symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> list[SSAValue]:
            is_there = inner.inside(tile.read, [thread], symbols)
            index = inner.apply(tile.read, [thread], symbols)
            read = {
                op: [
                    inner.add(PredicatedExtractOp(is_there, init, source, index))
                    for init, source in zip(inits[op], tiles[op], strict=True)
                ]
                for op in inits
            }
            return self._written(inner, self._over_lanes(inner, read), carried, symbols)

        return loop_over_symbols(scope, tile.reading_threads, [thread], outputs, finish)

    def _shared(self, scope: Scope, tile: SharedTile, values: Values) -> Values:
        """Return tiles that hold the values of all threads of the block."""
        flat = [value for several in values.values() for value in several]
        types = [builtin.TensorType(scalar_of(value), tile.shape) for value in flat]
        tiles = [scope.add(AllocateSharedOp(type_)) for type_ in types]
        thread = self._entry.ids[TH_X]

        def write(inner: Scope, symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> list[SSAValue]:
            index = inner.apply(tile.write, [thread], symbols)
            lanes = [self._lane(inner, value, *symbols[-1:]) for value in flat]
            return [inner.add(tensor.InsertOp(value, into, index)) for value, into in zip(lanes, carried, strict=True)]

        sync = SyncThreadsOp(*loop_over_symbols(scope, tile.write, [thread], tiles, write))
        scope.builder.insert(sync)
        return by_reduction(values, sync.outputs)

    def _over_lanes(self, scope: Scope, values: Values) -> Values:
        """Combine the values of the lanes of a warp."""
        combined: dict[Op, Sequence[SSAValue]] = {}
        for op, lane_values in values.items():
            reduce = ShuffleReduceOp(lane_values, self._combiner(op), self._maps.distance)
            scope.builder.insert(reduce)
            combined[op] = reduce.outputs
        return combined

    def _written(
        self, scope: Scope, values: Values, outputs: Sequence[SSAValue], symbols: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """Compute the roots from the reductions, write them where a thread has a result, and return the results."""
        fusion, arguments = self._fusion, (*self._entry.ids, *symbols)
        maps = {
            fusion.roots[number]: self._maps.output_in(fusion, fusion.roots[number], self._group.number)
            for number in self._group.roots
        }
        heroes = [(op, result) for op in self._group.reductions for result in op.results]
        epilogue = Epilogue(tuple(result for _, result in heroes), maps)
        name = emit_epilogue(self._functions, epilogue)
        hero_values = [value for op in self._group.reductions for value in self._completed(scope, op, values[op])]
        elements = call_epilogue(scope, name, epilogue, self._entry.parameters, arguments, hero_values)
        has_result = self._has_result(scope, next(iter(maps.values())), symbols)
        results = list(outputs)
        indices: dict[Op | None, list[SSAValue]] = {}
        for number in self._group.roots:
            root = fusion.roots[number]
            op = fusion.producer(root)
            if op not in indices:
                indices[op] = scope.apply(maps[root], self._entry.ids, symbols)
            element, into, index = elements[root], results[number], indices[op]
            results[number] = scope.add(
                tensor.InsertOp(element, into, index)
                if has_result is None
                else PredicatedInsertOp(has_result, element, into, index)
            )
        return results

    def _has_result(self, scope: Scope, map_: IndexingMap, symbols: Sequence[SSAValue]) -> SSAValue | None:
        """Return whether a thread has a result; None where each thread of the grid has one."""
        if self._maps.strip is not None and not map_.constraints:
            return None
        return scope.inside(map_, self._entry.ids, symbols)

    def _combiner(self, op: Op) -> str:
        return self._functions.region_function(op)

    def _vector_type(self, value: SSAValue) -> builtin.VectorType[Attribute]:
        return builtin.VectorType(value.type, [self._maps.vector])

    def _lane(self, scope: Scope, value: SSAValue, *symbol: SSAValue) -> SSAValue:
        """Return the element of an accumulator for a step over its vector."""
        if not isinstance(value.type, builtin.VectorType):
            return value
        return scope.add(vector.ExtractOp(value, symbol, value.type.element_type))
