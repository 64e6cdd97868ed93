"""Shardings inside and outside a manual computation, and the mesh several shardings have in common.

In the shardings of a manual computation every dimension has its manual axes first, its free axes after them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import takewhile

from attrs import evolve

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding


def num_manual_axes(dim: DimensionSharding, manual_axes: Collection[str]) -> int:
    """Return the number of manual axes that a dimension starts with."""
    return sum(1 for _ in takewhile(lambda axis: axis.name in manual_axes, dim.axes))


def _keep(
    sharding: TensorSharding,
    manual_axes: Collection[str],
    keep: Callable[[DimensionSharding, int], tuple[AxisRef, ...]],
) -> TensorSharding:
    return evolve(
        sharding,
        dim_shardings=tuple(
            evolve(dim, axes=keep(dim, num_manual_axes(dim, manual_axes))) for dim in sharding.dim_shardings
        ),
        replicated_axes=tuple(axis for axis in sharding.replicated_axes if axis.name not in manual_axes),
        unreduced_axes=tuple(axis for axis in sharding.unreduced_axes if axis.name not in manual_axes),
    )


def erase_manual_axes(sharding: TensorSharding, manual_axes: Collection[str]) -> TensorSharding:
    """Return the sharding that the body of a manual computation sees: without its manual axes."""
    if not manual_axes:
        return sharding
    return _keep(sharding, manual_axes, lambda dim, count: dim.axes[count:])


def erase_free_axes(sharding: TensorSharding, manual_axes: Collection[str]) -> TensorSharding:
    """Return the sharding with only the manual axes of each dimension.

    Manual axes among the replicated and unreduced axes go as well, as in the reference.
    """
    return _keep(sharding, manual_axes, lambda dim, count: dim.axes[:count])


def add_free_axes(outer: TensorSharding, inner: TensorSharding, manual_axes: Collection[str]) -> TensorSharding:
    """Return the sharding outside a manual computation whose body sees ``inner``.

    Args:
        outer: The present sharding outside; gives the manual, replicated and unreduced axes.
        inner: The new sharding inside; gives the free axes, open or closed, and the priorities.
        manual_axes: The names of the manual axes.
    """
    dims = zip(outer.dim_shardings, inner.dim_shardings, strict=True)
    return TensorSharding(
        inner.mesh,
        tuple(evolve(new, axes=old.axes[: num_manual_axes(old, manual_axes)] + new.axes) for old, new in dims),
        outer.replicated_axes,
        outer.unreduced_axes,
        outer.reduction_op,
    )


def resolve_mesh(mesh: str | Mesh, meshes: Mapping[str, Mesh]) -> Mesh | None:
    """Return an inlined mesh itself, a named one from ``meshes``, or None where the name is unknown."""
    return mesh if isinstance(mesh, Mesh) else meshes.get(mesh)


def common_mesh(
    shardings: Iterable[TensorSharding | None], meshes: Mapping[str, Mesh], *, ignore_device_ids: bool = False
) -> str | Mesh | None:
    """Return the mesh all shardings are on, as the first of them names it, or None.

    An empty mesh fits every mesh. Where the order of the devices does not matter, a mesh in default order is preferred.
    """
    mesh_or_name: str | Mesh | None = None
    mesh: Mesh | None = None
    for sharding in shardings:
        if sharding is None:
            continue
        other = resolve_mesh(sharding.mesh, meshes)
        if other is None:
            return None
        if mesh is None or mesh.is_empty:
            mesh_or_name, mesh = sharding.mesh, other
            continue
        if other.is_empty:
            continue
        if not other.equals(mesh, ignore_device_ids=ignore_device_ids):
            return None
        if ignore_device_ids and not other.device_ids:
            mesh_or_name, mesh = sharding.mesh, other
    return mesh_or_name
