"""Splitting axes where others start and end, so that any two that overlap are equal.

Mirrors utils.cc::alignSubAxesByDecomposition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.axis_lists import axis_order_key
from shardy_py.sharding.mesh import Mesh

AxesPerDim = list[list[AxisRef]]


def align(axes_per_dim: AxesPerDim, others: Iterable[AxisRef], mesh: Mesh) -> None:
    """Split every axis in place where one of ``others``, which do not overlap each other, starts or ends."""
    by_name: dict[str, list[AxisRef]] = {}
    for other in sorted(others, key=axis_order_key):
        by_name.setdefault(other.name, []).append(other)
    if not by_name:
        return
    for axes in axes_per_dim:
        axes[:] = [part for axis in axes for part in _split(axis, by_name.get(axis.name, ()), mesh)]


def align_with_each_other(first: AxesPerDim, second: AxesPerDim, mesh: Mesh) -> None:
    """Split the axes of both lists in place until those that overlap are equal."""
    first_axes = [axis for axes in first for axis in axes]
    second_axes = [axis for axes in second for axis in axes]
    align(first, second_axes, mesh)
    align(second, first_axes, mesh)


def _split(axis: AxisRef, others: Sequence[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """Return the parts of ``axis`` before, inside and after the others, as far as they can coexist."""
    parts: list[AxisRef] = []
    rest: AxisRef | None = axis
    for other in _from_first_overlap(axis, others):
        if rest is None or other.contains(rest):
            break
        overlap = rest.overlap(other)
        if overlap is None:
            break
        prefix = rest.prefix_without_overlap(other)
        parts += [overlap] if prefix is None else [prefix, overlap]
        rest = rest.suffix_without_overlap(other, mesh)
    return parts if rest is None else [*parts, rest]


def _from_first_overlap(axis: AxisRef, others: Sequence[AxisRef]) -> Sequence[AxisRef]:
    for index, other in enumerate(others):
        if other.overlaps(axis):
            return others[index:]
    return ()
