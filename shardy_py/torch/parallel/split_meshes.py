"""Meshes whose axes are split, so that placements can say what is sharded along a part of an axis."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.values import frozen


@frozen
class SplitMesh:
    """A mesh and the same mesh with split axes.

    Args:
        original: The mesh.
        mesh: The split one; the parts of ``model`` are called ``model_0``, ``model_1`` and so on, the major one first.
        bounds: For each axis of the original mesh, the products of the sizes of its first parts, from 1 to its size.
    """

    original: Mesh
    mesh: Mesh
    bounds: dict[str, tuple[int, ...]]

    def parts(self, axis: AxisRef) -> tuple[str, ...]:
        """Return the axes of the split mesh that an axis or a part of one consists of, the major one first."""
        bounds = self.bounds[axis.name]
        first, last = axis.pre_size, axis.next_pre_size(self.original)
        names = _names(axis.name, bounds)
        return tuple(name for name, start in zip(names, bounds, strict=False) if first <= start < last)


def split_mesh(mesh: Mesh, axes: Iterable[AxisRef]) -> SplitMesh:
    """Return a mesh split at the ends of parts of its axes.

    >>> from shardy_py.sharding.parse import parse_axis_ref
    >>> str(split_mesh(Mesh.of(data=2, model=8), [parse_axis_ref('"model":(1)2')]).mesh)
    '<["data"=2, "model_0"=2, "model_1"=4]>'

    Args:
        mesh: The mesh.
        axes: Axes and parts of axes. Parts whose ends do not divide each other leave out the later ones.
    """
    ends_by_axis = {axis.name: {1, axis.size} for axis in mesh.axes}
    for axis in axes:
        ends_by_axis[axis.name] |= {axis.pre_size, axis.next_pre_size(mesh)}
    bounds = {name: _dividing(sorted(ends)) for name, ends in ends_by_axis.items()}
    split = [
        MeshAxis(name, after // before)
        for axis in mesh.axes
        for name, (before, after) in zip(_names(axis.name, bounds[axis.name]), pairwise(bounds[axis.name]), strict=True)
    ]
    return SplitMesh(mesh, Mesh(tuple(split), mesh.device_ids), bounds)


def _names(name: str, bounds: tuple[int, ...]) -> list[str]:
    return [name] if len(bounds) <= 2 else [f"{name}_{number}" for number in range(len(bounds) - 1)]


def _dividing(ends: list[int]) -> tuple[int, ...]:
    """Return the ends that divide the next one kept; the size of the axis, the last, is always kept."""
    descending = [ends[-1]]
    for end in reversed(ends[:-1]):
        if descending[-1] % end == 0:
            descending.append(end)
    bounds = tuple(reversed(descending))
    return bounds if len(bounds) > 1 else (1, 1)
