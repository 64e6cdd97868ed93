"""The maps of reductions: from the ids of threads and blocks to elements of operand, result and shared tile.

They mirror XLA's `xla/backends/gpu/codegen/emitters/reduction.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from shardy_py.indexing import (
    Bound,
    Constant,
    Expression,
    IndexingMap,
    Interval,
    Variable,
    bounds_of,
    compose,
    dim,
    op_maps,
    simplify,
    symbol,
)
from shardy_py.indexing.canonical import canonicalize
from shardy_py.ir.graph.program import Value
from shardy_py.kernels.fusion.fusion import Fusion, shape_of
from shardy_py.kernels.launch.grid import BL_X, BL_Z, GRID_NAMES, TH_X, Launch, grid_bounds
from shardy_py.kernels.launch.reductions import ReductionPlan
from shardy_py.values import frozen

_BANKS = 32
_NONE = Interval(0, 0)
_THREAD, _BLOCK = dim(TH_X), dim(BL_X)

Constraint = tuple[Expression, Interval]


@frozen
class SharedTile:
    """A tile of shared memory through which warps pass on what they reduced.

    Args:
        shape: Its shape, with what keeps threads on different banks.
        write: The map from thread and symbol to the element that the thread writes.
        read: The map to the element that the thread reads.
        warp: The threads of a warp.
    """

    shape: tuple[int, ...]
    write: IndexingMap
    read: IndexingMap
    warp: int

    @property
    def reading_threads(self) -> IndexingMap:
        """The map of reading without constraints, for whole warps: all lanes take part in a shuffle."""
        (bound,) = self.read.dims
        upper = -(-(bound.interval.upper + 1) // self.warp) * self.warp - 1
        return evolve(self.read, dims=(evolve(bound, interval=Interval(0, upper)),), constraints=())


@frozen
class Strip:
    """The partial results of a thread that reduces by itself.

    Args:
        width: The results.
        parts: The partial results of each; those of one part are next to each other.
    """

    width: int
    parts: int

    @property
    def elements(self) -> IndexingMap:
        """The map from a loop over all partial results to their number."""
        return IndexingMap((symbol(0),), (), bounds_of((self.width * self.parts,)))

    @property
    def results(self) -> IndexingMap:
        """The map from a loop over the results to the number of the first part of each."""
        return IndexingMap((symbol(0),), (), bounds_of((self.width,)))

    @property
    def parts_of_result(self) -> IndexingMap:
        """The map from a result and a loop over its parts to the number of a partial result."""
        result = Bound(Interval(0, self.width - 1))
        return simplify(IndexingMap((symbol(0) * self.width + dim(0),), (result,), bounds_of((self.parts,))))


@frozen
class ReductionMaps:
    """Maps of what the threads of a reduction read, pass on and write.

    Args:
        shape: The shape of the operand as the map of the input sees it.
        input: The map from ids and steps to an element of the operand; the last step is that of a vector.
        kept: The shape of the result as the map of the output sees it.
        output: The map from ids, for columns also the step of a vector, to an element of the result.
        vector: The elements of an accumulator.
        distance: The largest distance between lanes that are combined.
        tile: The tile of shared memory, or None where a result needs one warp only.
        strip: The partial results of a thread that reduces by itself; the last step of the input is their number.
    """

    shape: tuple[int, ...]
    input: IndexingMap
    kept: tuple[int, ...]
    output: IndexingMap
    vector: int
    distance: int
    tile: SharedTile | None
    strip: Strip | None = None

    def input_in(self, fusion: Fusion, value: Value) -> IndexingMap:
        """Return the map from an index of the operand to that of a value of the fusion with as many elements."""
        return _same_place(fusion, self.shape, value)

    def output_in(self, fusion: Fusion, root: Value, group: int) -> IndexingMap:
        """Return the map from ids to an element of a root.

        Args:
            fusion: The fusion.
            root: The root, with as many elements as the result.
            group: The number of the root's group, by which blocks are told apart along z.
        """
        only = Bound(Interval(group, group), GRID_NAMES[BL_Z])
        dims = tuple(only if number == BL_Z else bound for number, bound in enumerate(self.output.dims))
        return simplify(compose(evolve(self.output, dims=dims), _same_place(fusion, self.kept, root)))


def reduction_maps(plan: ReductionPlan, launch: Launch) -> ReductionMaps:
    """Return the maps of a reduction.

    Args:
        plan: Its distribution over a grid.
        launch: The grid.
    """
    return _STYLES[plan.style](plan, launch)


def _multi_row(plan: ReductionPlan, launch: Launch) -> ReductionMaps:
    major, middle, _ = plan.form.dims
    row, column = _digits(_THREAD, (plan.rows, plan.per_row))
    place = _ids(_BLOCK, launch.blocks[0]) * plan.rows + row
    shape = plan.form.dims
    return ReductionMaps(
        shape=shape,
        input=_map(launch, (symbol(0), place, column * plan.vector + symbol(1)), (major, plan.vector), shape),
        kept=(middle,),
        output=_map(launch, (place,), (), (middle,), ((column, _NONE),)),
        vector=1,
        distance=plan.per_row // 2,
        tile=None,
    )


def _row(plan: ReductionPlan, launch: Launch) -> ReductionMaps:
    major, middle, minor = plan.form.dims
    columns = minor // plan.vector
    row, column = _digits(_THREAD, (plan.rows, plan.per_row))
    place = _ids(_BLOCK, launch.blocks[0]) * plan.rows + row
    steps = (major, -(-columns // plan.per_row), plan.vector)
    shape = (major, middle, columns, plan.vector)
    index = (symbol(0), place, symbol(1) * plan.per_row + column, symbol(2))
    warp = plan.warp
    warps = plan.per_row // warp
    tile = None
    if warps > 1:
        write = _thread_map(launch, (row, column // warp), (), ((column % warp, _NONE),))
        read = _thread_map(launch, (row, column % warp), (), ((column, Interval(0, warps - 1)),))
        tile = SharedTile((plan.rows, warps + (warps % _BANKS == 0)), write, read, warp)
    return ReductionMaps(
        shape=shape,
        input=_map(launch, index, steps, shape),
        kept=(middle,),
        output=_map(launch, (place,), (), (middle,), ((column, _NONE),)),
        vector=1,
        distance=warp // 2,
        tile=tile,
    )


def _small_column(plan: ReductionPlan, launch: Launch) -> ReductionMaps:
    major, middle, minor = plan.form.dims
    block, width = _ids(_BLOCK, major), plan.threads * plan.vector
    steps = (-(-(middle * minor) // width), plan.vector)
    place = (symbol(0) * plan.threads + _THREAD) * plan.vector + symbol(1)
    shape = (major, middle, minor)
    # The last vector may reach beyond the reduced elements as a whole.
    within_elements = (place, Interval(0, middle * minor - 1))
    written, combined = _THREAD * plan.vector + symbol(0), symbol(0) * plan.threads + _THREAD
    vectors = (plan.vector,)
    write = _thread_map(launch, (written // minor, written % minor), vectors)
    read = _thread_map(launch, (combined % plan.rows, combined // plan.rows), vectors)
    return ReductionMaps(
        shape=shape,
        input=_map(launch, (block, place // minor, place % minor), steps, shape, (within_elements,)),
        kept=(major, minor),
        output=_map(launch, (block, combined // plan.rows), vectors, (major, minor), ((combined % plan.rows, _NONE),)),
        vector=plan.vector,
        distance=plan.rows // 2,
        tile=SharedTile((plan.rows, minor + -(-minor // width)), write, read, plan.warp),
    )


def _column(plan: ReductionPlan, launch: Launch) -> ReductionMaps:
    major, middle, minor = plan.form.dims
    warp, lane = _digits(_THREAD, (plan.rows, plan.per_row))
    block, part = _digits(_BLOCK, plan.blocks)
    vectors = (plan.vector,)

    def column(within: Expression, step: Expression) -> Expression:
        return (part * plan.per_row + within) * plan.vector + step

    shape = (major, middle, minor)
    index = (block, warp + symbol(0) * plan.rows, column(lane, symbol(1)))
    write = _thread_map(launch, (lane, warp * plan.vector + symbol(0)), vectors)
    # Neighbours combine the rows of one column.
    combined, row = _digits(_THREAD, (plan.per_row, plan.rows))
    read = _thread_map(launch, (combined, row * plan.vector + symbol(0)), vectors)
    return ReductionMaps(
        shape=shape,
        input=_map(launch, index, (-(-middle // plan.rows), plan.vector), shape),
        kept=(major, minor),
        output=_map(launch, (block, column(combined, symbol(0))), vectors, (major, minor), ((row, _NONE),)),
        vector=plan.vector,
        distance=plan.rows // 2,
        tile=SharedTile((plan.per_row, plan.rows * plan.vector + 1), write, read, plan.warp),
    )


def _strip(plan: ReductionPlan, launch: Launch) -> ReductionMaps:
    shape = plan.form.dims
    major, middle, minor = shape
    width, parts = plan.per_row, plan.rows
    index: tuple[Expression, ...]
    written: tuple[Expression, ...]
    steps: tuple[int, ...]
    vectors: tuple[int, ...]
    kept: tuple[int, ...]
    inside: tuple[Constraint, ...] = ()
    if plan.form.is_row:
        place = _ids(_BLOCK, launch.blocks[0])
        index = (symbol(0), place, symbol(1) * parts + symbol(2))
        steps = (major, -(-minor // parts), parts)
        kept, written, vectors = (middle,), (place,), ()
    else:
        block, part = _digits(_BLOCK, plan.blocks)
        vectors, kept = (width,), (major, minor)
        written = (block, part * width + symbol(0))
        if parts == 1:
            index = (block, symbol(0), part * width + symbol(1))
            steps = (middle, width)
        else:
            # The strip has whole rows, so that the elements of several are next to each other.
            element = symbol(0) * (parts * width) + symbol(1)
            index = (block, element // minor, element % minor)
            steps, inside = (-(-middle // parts), parts * width), ((element, Interval(0, middle * minor - 1)),)
    return ReductionMaps(
        shape=shape,
        input=_map(launch, index, steps, shape, inside),
        kept=kept,
        output=_map(launch, written, vectors, kept),
        vector=1,
        distance=0,
        tile=None,
        strip=Strip(width, parts),
    )


_STYLES = {
    "multi-row": _multi_row,
    "row": _row,
    "small-column": _small_column,
    "column": _column,
    "strip": _strip,
}


def _ids(variable: Expression, count: int) -> Expression:
    """Return an id; 0 where there is one only."""
    return Constant(0) if count == 1 else variable


def _digits(number: Expression, sizes: Sequence[int]) -> list[Expression]:
    """Return the digits of a number below the product of some sizes."""
    digits = op_maps.delinearized(number, sizes)
    return [Constant(0) if size == 1 else digit for size, digit in zip(sizes, digits, strict=True)]


def _map(
    launch: Launch,
    results: Sequence[Expression],
    steps: Sequence[int],
    shape: Sequence[int],
    constraints: Sequence[Constraint] = (),
) -> IndexingMap:
    """Return a map from ids and steps to an index of a shape, simplified."""
    inside = [(result, Interval(0, size - 1)) for result, size in zip(results, shape, strict=True)]
    map_in_shape = _with(IndexingMap((), grid_bounds(launch), bounds_of(steps)), results, (*inside, *constraints))
    return simplify(map_in_shape)


def _thread_map(
    launch: Launch, results: Sequence[Expression], steps: Sequence[int], constraints: Sequence[Constraint] = ()
) -> IndexingMap:
    """Return a map from thread and steps to an index; a constraint on the thread alone becomes its bounds."""
    bound = grid_bounds(launch)[TH_X]
    step_constraints: list[Constraint] = []
    for expression, interval in constraints:
        if isinstance(expression, Variable):
            bound = evolve(bound, interval=bound.interval.meet(interval))
        else:
            step_constraints.append((expression, interval))
    return _with(IndexingMap((), (bound,), bounds_of(steps)), results, step_constraints)


def _with(map_: IndexingMap, results: Sequence[Expression], constraints: Sequence[Constraint]) -> IndexingMap:
    canonical_map = evolve(map_, results=tuple(canonicalize(result) for result in results))
    return canonical_map.with_constraints((canonicalize(expression), interval) for expression, interval in constraints)


def _same_place(fusion: Fusion, shape: Sequence[int], value: Value) -> IndexingMap:
    """Return the map from an index of a row-major shape to that of a value at the same place in memory."""
    order, layout = tuple(range(len(shape) - 1, -1, -1)), fusion.layout_of(value)
    if (tuple(shape), order) == (shape_of(value), layout):
        return op_maps.identity(shape)
    return op_maps.bitcast(shape, order, shape_of(value), layout)
