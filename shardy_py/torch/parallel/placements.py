"""Placements of DTensor from shardings: one per axis of the mesh."""

from __future__ import annotations

from collections.abc import Sequence
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
        reduction: The reduction that makes one of partial results: ``sum``, ``max`` or ``min``.
    """

    kind: Literal["replicate", "shard", "partial"] = "replicate"
    dim: int = 0
    reduction: str = ""

    def __str__(self) -> str:
        if self.kind == "shard":
            return f"Shard({self.dim})"
        return f"Partial({self.reduction})" if self.kind == "partial" else "Replicate()"


def placements_of(sharding: TensorSharding | None, mesh: Mesh, *, name: str = "the tensor") -> tuple[Placement, ...]:
    """Return the placements of a tensor.

    Args:
        sharding: The sharding; None is replicated.
        mesh: Its mesh.
        name: What errors call the tensor.

    Raises:
        UnsupportedError: it is along parts of axes, or along axes in another order than the mesh's.
    """
    placements = {axis.name: Placement() for axis in mesh.axes}
    if sharding is None:
        return tuple(placements.values())
    for dim, dim_sharding in enumerate(sharding.dim_shardings):
        _check(dim_sharding.axes, mesh, f"dimension {dim} of {name}")
        placements.update((axis.name, Placement("shard", dim)) for axis in dim_sharding.axes)
    reduction = _REDUCTIONS.get(str(sharding.reduction_op or "sum"), "sum")
    for axis in sharding.unreduced_axes:
        placements[axis.name] = Placement("partial", reduction=reduction)
    return tuple(placements.values())


def _check(axes: Sequence[AxisRef], mesh: Mesh, subject: str) -> None:
    order = [axis.name for axis in mesh.axes]
    for axis in axes:
        if axis.size(mesh) != mesh.axis_size(axis.name):
            axis_size, part = mesh.axis_size(axis.name), axis.size(mesh)
            message = f"{subject} is sharded along a part of the axis {axis.name!r}, which placements cannot say"
            hint = f"split the axis of size {axis_size} of the mesh in two: {part} and {axis_size // part}"
            raise UnsupportedError(Diagnostic("no-placement", message, hint=hint))
    positions = [order.index(axis.name) for axis in axes]
    if positions != sorted(positions):
        names = ", ".join(axis.name for axis in axes)
        message = f"{subject} is sharded along the axes {names} in this order, which placements cannot say"
        hint = "give the axes of the mesh in this order"
        raise UnsupportedError(Diagnostic("no-placement", message, hint=hint))


def to_torch_placements(placements: Sequence[Placement]) -> tuple[Any, ...]:
    """Return the placements of PyTorch; ``torch`` must be installed."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    constructors = {"shard": lambda item: Shard(item.dim), "partial": lambda item: Partial(item.reduction)}
    return tuple(constructors[item.kind](item) if item.kind in constructors else Replicate() for item in placements)
