"""Axes of a mesh that are taken together, and shardings without them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from attrs import evolve, field

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.support.identity import identity
from shardy_py.values import frozen


class UnfitAxes(Exception):
    """Some axes cannot be taken from a sharding."""


@frozen
class AxisGroup:
    """Axes of a mesh that are taken together.

    Args:
        mesh_name: The name of the mesh.
        mesh: The mesh.
        axes: The axes.
    """

    mesh_name: str
    mesh: Mesh
    axes: tuple[AxisRef, ...]
    _remaining: dict[TensorSharding, TensorSharding | None] = field(factory=dict, init=False, eq=False, repr=False)
    _closed: dict[tuple[int, int], tuple[TensorSharding | None, TensorSharding]] = field(
        factory=dict, init=False, eq=False, repr=False
    )
    """Closed shardings by the rank and the identity of what they were made of, which lives as long."""
    _shards: dict[TensorSharding, bool] = field(factory=dict, init=False, eq=False, repr=False)
    _unfit: set[TensorSharding] = field(factory=set, init=False, eq=False, repr=False)

    def shards(self, sharding: TensorSharding | None) -> bool:
        """Return whether a sharding has one of the axes.

        Raises:
            UnfitAxes: an axis is cut in two.
        """
        if sharding is None:
            return False
        has_axis = self._shards.get(sharding)
        if has_axis is None:
            has_axis = any(self._has(axis) for dim in sharding.dim_shardings for axis in dim.axes)
            self._shards[sharding] = has_axis
        return has_axis

    def without(self, sharding: TensorSharding | None) -> TensorSharding | None:
        """Return a sharding without the axes; None where nothing is sharded.

        Raises:
            UnfitAxes: an axis is cut in two, others are minor to it, or the sharding is partial or of another mesh.
        """
        if sharding is None:
            return None
        if sharding in self._remaining:
            return self._remaining[sharding]
        if sharding in self._unfit:
            raise UnfitAxes
        try:
            remaining = self._without(sharding)
        except UnfitAxes:
            self._unfit.add(sharding)
            raise
        self._remaining[sharding] = remaining
        return remaining

    def own_axes(self, axes: Iterable[AxisRef]) -> tuple[AxisRef, ...]:
        """Return those of some axes that belong to the group.

        Raises:
            UnfitAxes: an axis is cut in two.
        """
        return tuple(axis for axis in axes if self._has(axis))

    def closed(self, sharding: TensorSharding | None, rank: int) -> TensorSharding:
        """Return the sharding of a tensor as far as it says where data is; equal ones are one object."""
        key = identity(sharding), rank
        entry = self._closed.get(key)
        if entry is None:
            entry = self._closed[key] = sharding, _closed(sharding, self.mesh_name, rank)
        return entry[1]

    def _without(self, sharding: TensorSharding) -> TensorSharding | None:
        if sharding.unreduced_axes:
            raise UnfitAxes
        if sharding.is_fully_replicated:
            return None
        if sharding.mesh != self.mesh_name:
            raise UnfitAxes
        remaining = TensorSharding(sharding.mesh, tuple(map(self._major, sharding.dim_shardings)))
        return None if remaining.is_fully_replicated else remaining

    def _major(self, dim: DimensionSharding) -> DimensionSharding:
        has = [self._has(axis) for axis in dim.axes]
        count = has.index(True) if True in has else len(has)
        if not all(has[count:]):
            raise UnfitAxes
        return DimensionSharding(dim.axes[:count])

    def _has(self, axis: AxisRef) -> bool:
        for group_axis in self.axes:
            if group_axis.contains(axis):
                return True
            if group_axis.overlaps(axis):
                raise UnfitAxes
        return False


@lru_cache(maxsize=65536)
def _closed(sharding: TensorSharding | None, mesh_name: str, rank: int) -> TensorSharding:
    if sharding is None or sharding.is_fully_replicated:
        return _same(TensorSharding.fully_closed(mesh_name, rank))
    if sharding.replicated_axes:
        sharding = evolve(sharding, replicated_axes=())
    return _same(sharding.closed_like())


@lru_cache(maxsize=65536)
def _same(sharding: TensorSharding) -> TensorSharding:
    """Return one object for equal shardings: these are compared at once."""
    return sharding
