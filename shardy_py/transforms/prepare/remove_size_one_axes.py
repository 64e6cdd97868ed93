"""Take axes of size one out of all shardings: they shard nothing, but two of them could be in conflict.

Mirrors remove_size_one_axes.cc::RemoveSizeOneAxesPass.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.sharding_walker import transform_shardings
from shardy_py.values import NoFields


class RemoveSizeOneAxesPass(NoFields):
    """Remove axes of size one from shardings; meshes and lists of manual axes keep them."""

    name: ClassVar[str] = "sdy-remove-size-one-axes"

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite all shardings, unless no mesh of the module has such an axis."""
        meshes = program.meshes
        if not any(axis.size == 1 for mesh in meshes.values() for axis in mesh.axes):
            return

        @cache
        def transform(sharding: TensorSharding) -> TensorSharding:
            mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes[sharding.mesh]
            return remove_size_one_axes(sharding, mesh)

        def concerns(sharding: TensorSharding) -> bool:
            return transform(sharding) != sharding

        transform_shardings(program, context.semantics, transform, concerns=concerns)


def remove_size_one_axes(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    """Return a sharding without its axes of size one.

    >>> from shardy_py.sharding import parse_tensor_sharding
    >>> sharding = parse_tensor_sharding('<@mesh, [{"a", "b"}p1, {"a"}p2]>')
    >>> print(remove_size_one_axes(sharding, Mesh.of(a=1, b=2)))
    <@mesh, [{"b"}p1, {}]>
    """
    return evolve(
        sharding,
        dim_shardings=tuple([_reduce(dim, mesh) for dim in sharding.dim_shardings]),
        replicated_axes=_without_size_one(sharding.replicated_axes, mesh),
        unreduced_axes=_without_size_one(sharding.unreduced_axes, mesh),
    )


def _reduce(dim: DimensionSharding, mesh: Mesh) -> DimensionSharding:
    axes = _without_size_one(dim.axes, mesh)
    # A priority without axes to propagate, and none to receive, is not allowed.
    priority = dim.priority if axes or not dim.is_closed else None
    return evolve(dim, axes=axes, priority=priority)


def _without_size_one(axes: Iterable[AxisRef], mesh: Mesh) -> tuple[AxisRef, ...]:
    return tuple([axis for axis in axes if axis.size(mesh) != 1])
