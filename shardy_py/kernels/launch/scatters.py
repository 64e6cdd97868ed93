"""The maps of scatters: threads are spread over the updates, or warps over rows of sorted indices."""

from __future__ import annotations

from math import gcd, prod

from attrs import evolve

from shardy_py.indexing import (
    Bound,
    Constant,
    Expression,
    IndexingMap,
    Interval,
    Variable,
    VariableKind,
    dim,
    op_maps,
    simplify,
    symbol,
    without_variables,
)
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.fusion import element_type_of, shape_of
from shardy_py.kernels.fusion.scatters import RootScatter, has_unique_indices
from shardy_py.kernels.launch.grid import BL_X, TH_X, THREADS, Launch, grid_bounds, loop_map, space_launch
from shardy_py.values import frozen

_VECTOR_BITS = 128


@frozen
class SortedRows:
    """Distribution of sorted indices over warps: each takes some in a row, its lanes the elements of windows.

    Args:
        per_warp: The indices of a warp.
        indices_at_once: How many of them are read at once.
        lanes: The lanes of a warp.
        width: The elements of a window that are next to each other in a lane.
        steps: How often the lanes go over a window.
    """

    per_warp: int
    indices_at_once: int
    lanes: int
    width: int
    steps: int


def scatter_launch(scatter: RootScatter, device: DeviceSpec) -> Launch:
    """Return the launch of a scatter: whole warps over its updates, or over rows of sorted indices."""
    rows, launch = sorted_rows(scatter, device), space_launch(scatter.space, device)
    warp = device.threads_per_warp
    if rows is None:
        return evolve(launch, threads=(-(-launch.threads[0] // warp) * warp, 1, 1))
    warps = -(-scatter.form.count // rows.per_warp)
    return Launch((-(-warps // (THREADS // warp)), 1, 1), (THREADS, 1, 1), launch.unroll)


def sorted_rows(scatter: RootScatter, device: DeviceSpec) -> SortedRows | None:
    """Return how warps share the indices of a sorted scatter; None where threads take single updates.

    Indices of one component are read as vectors of up to 128 bits, so that the number for a warp is a multiple of their
    length. A warp combines updates with each other first, so that the region has to be associative.
    """
    op, form = scatter.op, scatter.form
    # A lane adds up windows of one operand, whose place only their index says.
    if form.batches or len(op.results) > 1 or not form.targets:
        return None
    warps = (THREADS // device.threads_per_warp) * device.cores
    # A lane adds up in a vector, and there are none of complex numbers.
    is_complex = element_type_of(op.results[0]).startswith("complex")
    if not op.attributes.get("indices_are_sorted") or is_complex or has_unique_indices(op) or form.count <= warps:
        return None
    if not scatter.is_associative:
        return None
    output = shape_of(op.results[0])
    possible = prod(max(1, output[number] - form.window[number] + 1) for number in form.targets)
    count = -(-form.count // max(warps, possible))
    vector = _VECTOR_BITS // scatter.index_bits
    at_once = vector if form.components == 1 and count > vector else 1
    lanes, elements = device.threads_per_warp, prod(form.window)
    width = gcd(elements, _VECTOR_BITS // scatter.update_bits)
    while width > 1 and lanes * width > elements:
        width //= 2
    return SortedRows(-(-count // at_once) * at_once, at_once, lanes, width, -(-elements // (lanes * width)))


def scatter_maps(scatter: RootScatter, launch: Launch, device: DeviceSpec) -> tuple[IndexingMap, ...]:
    """Return the map of every loop of the entry function: one over updates, or one over indices and those in it.

    Those in it write what was added up, begin anew, and add up; one behind it writes what is left.
    """
    rows = sorted_rows(scatter, device)
    if rows is None or rows.per_warp == 1:
        return (update_map(scatter, launch, rows),)
    return (index_map(scatter, launch, rows), *(element_map(scatter, launch, rows),) * 4)


def update_map(scatter: RootScatter, launch: Launch, rows: SortedRows | None) -> IndexingMap:
    """Return the map from threads, blocks and loops to the index of an element of the updates.

    Args:
        scatter: The scatter.
        launch: The grid.
        rows: How warps share the indices, of which each takes one; None where threads take single updates.
    """
    if rows is None:
        return loop_map(launch, scatter.space.shape, scatter.space.layout)
    number = _first_index(launch, rows) + symbol(0)
    loops = (Bound(Interval(0, rows.per_warp - 1), "index_id_loop"), *_element_loops(rows))
    place, window = _places(scatter, rows, (symbol(1), symbol(2)))
    map_ = IndexingMap((number, *window), grid_bounds(launch), loops)
    limits = (scatter.form.count, prod(scatter.form.window))
    pairs = zip((number, place), limits, strict=True)
    return simplify(map_.with_constraints([(expression, Interval(0, limit - 1)) for expression, limit in pairs]))


def index_map(scatter: RootScatter, launch: Launch, rows: SortedRows) -> IndexingMap:
    """Return the map from a warp, and two loops over its indices, to the number of an index."""
    number = _first_index(launch, rows) + symbol(0) * rows.indices_at_once + symbol(1)
    loops = (rows.per_warp // rows.indices_at_once, rows.indices_at_once)
    ranges = tuple(
        Bound(Interval(0, size - 1), name)
        for size, name in zip(loops, ("index_id_loop", "index_vector_id"), strict=True)
    )
    map_ = IndexingMap((number,), grid_bounds(launch), ranges)
    return simplify(map_.with_constraints([(number, Interval(0, scatter.form.count - 1))]))


def element_map(scatter: RootScatter, launch: Launch, rows: SortedRows) -> IndexingMap:
    """Return the map from a lane, one of its warp's indices and two loops to the index of an element of the updates."""
    grid = grid_bounds(launch)
    number = _first_index(launch, rows) + dim(len(grid))
    dims = (*grid, Bound(Interval(0, rows.per_warp - 1), "index_id_loop"))
    place, window = _places(scatter, rows, (symbol(0), symbol(1)))
    # That there is such an index is known from the loop over them.
    map_ = IndexingMap((number, *window), dims, _element_loops(rows))
    return simplify(map_.with_constraints([(place, Interval(0, prod(scatter.form.window) - 1))]))


def _first_index(launch: Launch, rows: SortedRows) -> Expression:
    warps = launch.threads[0] // rows.lanes
    return dim(TH_X) // rows.lanes * rows.per_warp + dim(BL_X) * (warps * rows.per_warp)


def _element_loops(rows: SortedRows) -> tuple[Bound, ...]:
    return (Bound(Interval(0, rows.steps - 1), "update_loop"), Bound(Interval(0, rows.width - 1), "vector_id"))


def _places(
    scatter: RootScatter, rows: SortedRows, loops: tuple[Expression, Expression]
) -> tuple[Expression, tuple[Expression, ...]]:
    """Return the number of an element in its window, and its index there."""
    window = scatter.form.window
    step, inner = loops
    place = step * (rows.lanes * rows.width) + dim(TH_X) % rows.lanes * rows.width + inner
    strides = zip(op_maps.strides_of(window), window, strict=True)
    return place, tuple(place // stride % size for stride, size in strides)


def window_map(map_: IndexingMap, launch: Launch) -> IndexingMap:
    """Return the map from threads and blocks alone to the number of the window, of which no thread has two parts.

    It is for all threads of the grid, also for those behind the last window, which have nothing to do.
    """
    at_first: dict[Variable, Expression] = {
        Variable(VariableKind.RANGE, number): Constant(0) for number in range(len(map_.ranges))
    }
    first = without_variables(IndexingMap(map_.results[:1], grid_bounds(launch), map_.ranges), at_first, at_first)
    return simplify(first)
