"""The maps of scatters: threads are spread over the updates, or warps over rows of sorted indices."""

from __future__ import annotations

from math import gcd, prod

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
from shardy_py.ir.graph.program import Op, Value
from shardy_py.kernels.device import DeviceSpec
from shardy_py.kernels.fusion.combiners import is_associative
from shardy_py.kernels.fusion.fusion import Fusion, bits_of, element_type_of, shape_of
from shardy_py.kernels.fusion.in_place import form_of, scatter_of
from shardy_py.kernels.fusion.scatter_form import ScatterForm, scatter_form
from shardy_py.kernels.launch.grid import BL_X, TH_X, THREADS, Launch, grid_bounds, loop_map
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


def scatter_maps(fusion: Fusion, launch: Launch, device: DeviceSpec) -> tuple[IndexingMap, ...]:
    """Return the map of every loop of the entry function: one over updates, or one over indices and those in it.

    Those in it write what was added up, begin anew, and add up; one behind it writes what is left.
    """
    rows = sorted_rows(fusion, device)
    if rows is None or rows.per_warp == 1:
        return (update_map(fusion, launch, rows),)
    return (index_map(fusion, launch, rows), *(element_map(fusion, launch, rows),) * 4)


def update_map(fusion: Fusion, launch: Launch, rows: SortedRows | None) -> IndexingMap:
    """Return the map from threads, blocks and loops to the index of an element of the updates.

    Args:
        fusion: The fusion.
        launch: The grid.
        rows: How warps share the indices, of which each takes one; None where threads take single updates.
    """
    if rows is not None:
        return _row_map(fusion, launch, rows)
    form, updates = form_of(fusion), updates_of(scatter_of(fusion))[0]
    # Updates of another form are passed over in the order of windows, whatever their layout.
    layout = (
        fusion.layout_of(updates) if form.has_canonical_updates else tuple(reversed(range(len(form.updates_shape))))
    )
    return loop_map(launch, form.updates_shape, layout)


def indices_of(scatter: Op) -> Value:
    """Return the indices of a scatter."""
    return scatter.operands[len(scatter.results)]


def updates_of(scatter: Op) -> tuple[Value, ...]:
    """Return the updates of a scatter, those for each operand."""
    return tuple(scatter.operands[len(scatter.results) + 1 :])


def window_map(map_: IndexingMap, launch: Launch) -> IndexingMap:
    """Return the map from threads and blocks alone to the number of the window, of which no thread has two parts.

    It is for all threads of the grid, also for those behind the last window, which have nothing to do.
    """
    at_first: dict[Variable, Expression] = {
        Variable(VariableKind.RANGE, number): Constant(0) for number in range(len(map_.ranges))
    }
    first = without_variables(IndexingMap(map_.results[:1], grid_bounds(launch), map_.ranges), at_first, at_first)
    return simplify(first)


def indices_per_warp(fusion: Fusion, scatter: Op, device: DeviceSpec) -> int | None:
    """Return how many indices in a row each warp of a sorted scatter takes; None where threads take single updates.

    Indices of one component are read as vectors of up to 128 bits, so that the number is a multiple of their length. A
    warp combines updates with each other first, so that the region has to be associative.
    """
    form = scatter_form(scatter)
    # A lane adds up windows of one operand, whose place only their index says.
    if form is None or form.batches or len(scatter.results) > 1 or not form.targets:
        return None
    warps = (THREADS // device.threads_per_warp) * device.cores
    is_sorted = bool(scatter.attributes.get("indices_are_sorted"))
    # A lane adds up in a vector, and there are none of complex numbers.
    is_complex = element_type_of(scatter.results[0]).startswith("complex")
    if not is_sorted or is_complex or scatter.attributes.get("unique_indices") or form.count <= warps:
        return None
    if not is_associative(fusion, scatter):
        return None
    output = shape_of(scatter.results[0])
    possible = prod(max(1, output[number] - form.window[number] + 1) for number in form.targets)
    count = -(-form.count // max(warps, possible))
    vector = _indices_at_once(scatter, form, count)
    return -(-count // vector) * vector


def _indices_at_once(scatter: Op, form: ScatterForm, count: int) -> int:
    vector = _VECTOR_BITS // bits_of(element_type_of(indices_of(scatter)))
    return vector if form.components == 1 and count > vector else 1


def sorted_rows(fusion: Fusion, device: DeviceSpec) -> SortedRows | None:
    """Return how warps share the indices of a sorted scatter; None where threads take single updates."""
    scatter = scatter_of(fusion)
    per_warp = indices_per_warp(fusion, scatter, device)
    if per_warp is None:
        return None
    form, (updates,) = form_of(fusion), updates_of(scatter)
    lanes, elements = device.threads_per_warp, prod(form.window)
    width = gcd(elements, _VECTOR_BITS // bits_of(element_type_of(updates)))
    while width > 1 and lanes * width > elements:
        width //= 2
    return SortedRows(
        per_warp, _indices_at_once(scatter, form, per_warp), lanes, width, -(-elements // (lanes * width))
    )


def index_map(fusion: Fusion, launch: Launch, rows: SortedRows) -> IndexingMap:
    """Return the map from a warp, and two loops over its indices, to the number of an index."""
    count = form_of(fusion).count
    number = _first_index(launch, rows) + symbol(0) * rows.indices_at_once + symbol(1)
    loops = (rows.per_warp // rows.indices_at_once, rows.indices_at_once)
    ranges = tuple(
        Bound(Interval(0, size - 1), name)
        for size, name in zip(loops, ("index_id_loop", "index_vector_id"), strict=True)
    )
    map_ = IndexingMap((number,), grid_bounds(launch), ranges)
    return simplify(map_.with_constraints([(number, Interval(0, count - 1))]))


def _first_index(launch: Launch, rows: SortedRows) -> Expression:
    warps = launch.threads[0] // rows.lanes
    return dim(TH_X) // rows.lanes * rows.per_warp + dim(BL_X) * (warps * rows.per_warp)


def element_map(fusion: Fusion, launch: Launch, rows: SortedRows) -> IndexingMap:
    """Return the map from a lane, one of its warp's indices and two loops to the index of an element of the updates."""
    grid = grid_bounds(launch)
    number = _first_index(launch, rows) + dim(len(grid))
    dims = (*grid, Bound(Interval(0, rows.per_warp - 1), "index_id_loop"))
    place, window = _places(fusion, rows, (symbol(0), symbol(1)))
    # That there is such an index is known from the loop over them.
    map_ = IndexingMap((number, *window), dims, _element_loops(rows))
    return simplify(map_.with_constraints([(place, Interval(0, _window_elements(fusion) - 1))]))


def _row_map(fusion: Fusion, launch: Launch, rows: SortedRows) -> IndexingMap:
    """Return the map from a lane whose warp has one index, and two loops, to the index of an element of the updates."""
    number = _first_index(launch, rows) + symbol(0)
    loops = (Bound(Interval(0, rows.per_warp - 1), "index_id_loop"), *_element_loops(rows))
    place, window = _places(fusion, rows, (symbol(1), symbol(2)))
    map_ = IndexingMap((number, *window), grid_bounds(launch), loops)
    limits = (form_of(fusion).count, _window_elements(fusion))
    pairs = zip((number, place), limits, strict=True)
    return simplify(map_.with_constraints([(expression, Interval(0, limit - 1)) for expression, limit in pairs]))


def _element_loops(rows: SortedRows) -> tuple[Bound, ...]:
    return (Bound(Interval(0, rows.steps - 1), "update_loop"), Bound(Interval(0, rows.width - 1), "vector_id"))


def _window_elements(fusion: Fusion) -> int:
    return prod(form_of(fusion).window)


def _places(
    fusion: Fusion, rows: SortedRows, loops: tuple[Expression, Expression]
) -> tuple[Expression, tuple[Expression, ...]]:
    """Return the number of an element in its window, and its index there."""
    window = form_of(fusion).window
    step, inner = loops
    place = step * (rows.lanes * rows.width) + dim(TH_X) % rows.lanes * rows.width + inner
    strides = zip(op_maps.strides_of(window), window, strict=True)
    return place, tuple(place // stride % size for stride, size in strides)
