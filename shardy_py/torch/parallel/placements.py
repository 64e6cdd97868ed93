"""Placements of DTensor from shardings: one per axis of the mesh."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

_REDUCTIONS = {"sum": "sum", "add": "sum", "max": "max", "min": "min"}


@frozen
class Placement:
    """The placement of a tensor along one dimension of a mesh, as text in DTensor's words.

    >>> str(Placement("shard", 1))
    'Shard(1)'

    Args:
        kind: ``replicate``, ``shard`` or ``partial``.
        dim: The tensor dimension of a shard.
        split_factor: Into how many parts later dimensions of the mesh cut the dimension before this one does; 1 where
            it is cut in the order of the mesh.
        reduction: The reduction that makes one of partial results: ``sum``, ``max`` or ``min``.
    """

    kind: Literal["replicate", "shard", "partial"] = "replicate"
    dim: int = 0
    reduction: str = ""
    split_factor: int = 1

    def __str__(self) -> str:
        if self.kind == "shard" and self.split_factor > 1:
            return f"_StridedShard({self.dim}, split_factor={self.split_factor})"
        if self.kind == "shard":
            return f"Shard({self.dim})"
        return f"Partial({self.reduction})" if self.kind == "partial" else "Replicate()"


def placements_of(
    sharding: TensorSharding | None, mesh: Mesh, *, name: str = "the tensor", in_order: bool = False
) -> tuple[Placement, ...]:
    """Return the placements of a tensor.

    Args:
        sharding: The sharding; None is replicated.
        mesh: Its mesh.
        name: What errors call the tensor.
        in_order: Whether axes have to be in the order of the mesh, as only private placements of PyTorch allow others.

    Raises:
        UnsupportedError: it is along parts of axes, or along axes in another order.
    """
    placements = {axis.name: Placement() for axis in mesh.axes}
    if sharding is None:
        return tuple(placements.values())
    for dim, dim_sharding in enumerate(sharding.dim_shardings):
        _check(dim_sharding.axes, mesh, f"dimension {dim} of {name}", in_order=in_order)
        placements |= _shards(dim, dim_sharding.axes, mesh)
    reduction = _REDUCTIONS.get(str(sharding.reduction_op or "sum"), "sum")
    for axis in sharding.unreduced_axes:
        placements[axis.name] = Placement("partial", reduction=reduction)
    return tuple(placements.values())


def _shards(dim: int, axes: Sequence[AxisRef], mesh: Mesh) -> dict[str, Placement]:
    """Return the placements along the axes of a dimension, by their names."""
    order = [axis.name for axis in mesh.axes]
    placements = {}
    for number, axis in enumerate(axes):
        later = [other for other in axes[:number] if order.index(other.name) > order.index(axis.name)]
        factor = prod(other.size(mesh) for other in later)
        placements[axis.name] = Placement("shard", dim, split_factor=factor)
    return placements


def _check(axes: Sequence[AxisRef], mesh: Mesh, subject: str, *, in_order: bool) -> None:
    order = [axis.name for axis in mesh.axes]
    for axis in axes:
        if axis.size(mesh) != mesh.axis_size(axis.name):
            axis_size, part = mesh.axis_size(axis.name), axis.size(mesh)
            message = f"{subject} is sharded along a part of the axis {axis.name!r}, which placements cannot say"
            hint = f"split the axis of size {axis_size} of the mesh in two: {part} and {axis_size // part}"
            raise UnsupportedError(Diagnostic("no-placement", message, hint=hint))
    positions = [order.index(axis.name) for axis in axes]
    if in_order and positions != sorted(positions):
        names = ", ".join(axis.name for axis in axes)
        message = f"{subject} is sharded along the axes {names} in this order, which placements cannot say"
        hint = "give the axes of the mesh in this order"
        raise UnsupportedError(Diagnostic("no-placement", message, hint=hint))


def to_torch_placements(placements: Sequence[Placement]) -> tuple[Any, ...]:
    """Return the placements of PyTorch; ``torch`` must be installed."""
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor.placement_types import _StridedShard

    def shard(item: Placement) -> Any:
        return Shard(item.dim) if item.split_factor == 1 else _StridedShard(item.dim, split_factor=item.split_factor)

    constructors = {"shard": shard, "partial": lambda item: Partial(item.reduction)}
    return tuple(constructors[item.kind](item) if item.kind in constructors else Replicate() for item in placements)
