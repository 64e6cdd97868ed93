"""Meshes and their axes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from shardy_py.sharding.axes import AxisRef, add_axis_or_merge, make_axis
from shardy_py.sharding.mesh import Mesh, MeshAxis

AXIS_SIZES = (1, 2, 3, 4, 6, 8, 12)
PLAIN_NAMES = ("x", "y", "z", "data", "model")

plain_names = st.sampled_from(PLAIN_NAMES)
names = st.one_of(plain_names, st.text(min_size=1, max_size=6))
"""Axis and mesh names, some of which have to be quoted or escaped."""


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, smallest first."""
    return [value for value in range(1, number + 1) if number % value == 0]


@st.composite
def meshes(
    draw: st.DrawFn, *, max_axes: int = 3, max_devices: int = 96, axis_names: st.SearchStrategy[str] = plain_names
) -> Mesh:
    """Draw a mesh with axes, sometimes with its devices in another order."""
    chosen = draw(st.lists(axis_names, min_size=1, max_size=max_axes, unique=True))
    axes: list[MeshAxis] = []
    room = max_devices
    for name in chosen:
        axes.append(MeshAxis(name, draw(st.sampled_from([size for size in AXIS_SIZES if size <= room]))))
        room //= axes[-1].size
    mesh = Mesh(tuple(axes))
    if not draw(st.booleans()):
        return mesh
    return Mesh(mesh.axes, tuple(draw(st.permutations(range(mesh.total_size)))))


special_meshes = st.one_of(st.just(Mesh()), st.integers(0, 99).map(lambda device: Mesh((), (device,))))
"""The empty mesh and maximal meshes."""


@st.composite
def axis_refs(draw: st.DrawFn, mesh: Mesh) -> AxisRef:
    """Draw any valid axis or sub-axis of a mesh."""
    axis = draw(st.sampled_from([item for item in mesh.axes if item.size > 1] or list(mesh.axes)))
    if axis.size == 1:
        return AxisRef(axis.name)
    end = draw(st.sampled_from([value for value in divisors(axis.size) if value > 1]))
    start = draw(st.sampled_from([value for value in divisors(end) if value < end]))
    return make_axis(axis.name, start, end // start, mesh)


@st.composite
def factorisations(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """Draw a chain of divisors from 1 to a size, each a divisor of the next."""
    chain = [1]
    while chain[-1] != size:
        chain.append(draw(st.sampled_from([v for v in divisors(size) if v > chain[-1] and v % chain[-1] == 0])))
    return tuple(chain)


@st.composite
def partitions(draw: st.DrawFn, mesh: Mesh) -> list[AxisRef]:
    """Draw all axes of a mesh, split into sub-axes, in any order: they coexist and do not overlap."""
    parts: list[AxisRef] = []
    for axis in mesh.axes:
        chain = draw(factorisations(axis.size)) if axis.size > 1 else ()
        parts += [make_axis(axis.name, pre, end // pre, mesh) for pre, end in pairwise(chain)]
    return list(draw(st.permutations(parts)))


@st.composite
def coexisting_pairs(draw: st.DrawFn, mesh: Mesh) -> tuple[AxisRef, AxisRef]:
    """Draw two axes of the same name that coexist; they may overlap."""
    axis = draw(st.sampled_from([item for item in mesh.axes if item.size > 1]))
    chain = draw(factorisations(axis.size))

    def part() -> AxisRef:
        start, end = sorted(draw(st.lists(st.sampled_from(chain), min_size=2, max_size=2, unique=True)))
        return make_axis(axis.name, start, end // start, mesh)

    return part(), part()


def merged(axes: list[AxisRef], mesh: Mesh) -> tuple[AxisRef, ...]:
    """Return a list of axes in the same order with consecutive sub-axes merged."""
    result: list[AxisRef] = []
    for axis in axes:
        add_axis_or_merge(result, axis, mesh)
    return tuple(result)


@st.composite
def axis_lists(draw: st.DrawFn, mesh: Mesh) -> tuple[AxisRef, ...]:
    """Draw a valid list of axes, major to minor, as a dimension sharding has it."""
    parts = draw(partitions(mesh))
    return merged(parts[: draw(st.integers(0, len(parts)))], mesh)
