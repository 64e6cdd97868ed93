"""Shardings from the placements of PyTorch's DTensor: one per dimension of the mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding

_HINT = "give one of Replicate(), Shard(dim) and Partial() for each dimension of the mesh"


def is_placements(spec: Any) -> bool:
    """Return whether a sharding is given as placements."""
    return (
        isinstance(spec, Sequence)
        and not isinstance(spec, str)
        and any(type(item).__module__.startswith("torch.distributed") for item in spec)
    )


def from_placements(placements: Sequence[Any], *, rank: int, mesh_name: str, mesh: Mesh) -> TensorSharding:
    """Return the sharding that placements describe, closed in all dimensions, as DTensor's are.

    Args:
        placements: One placement per dimension of the mesh; missing ones are replicated.
        rank: The rank of the tensor.
        mesh_name: The name of the mesh.
        mesh: The mesh.

    Raises:
        OptionError: there are more placements than dimensions of the mesh, or one has no counterpart.
    """
    if len(placements) > len(mesh.axes):
        message = f"{len(placements)} placements are given for a mesh of {len(mesh.axes)} dimensions"
        raise OptionError(Diagnostic("invalid-placements", message, hint=_HINT))
    dims: list[list[AxisRef]] = [[] for _ in range(rank)]
    unreduced: list[AxisRef] = []
    for axis, placement in zip(mesh.axes, placements, strict=False):
        kind = type(placement).__name__
        if kind == "Shard" and -rank <= placement.dim < rank:
            dims[placement.dim].append(AxisRef(axis.name))
        elif kind == "Partial" and placement.reduce_op == "sum":
            unreduced.append(AxisRef(axis.name))
        elif kind != "Replicate":
            message = f"{placement!r} cannot be a placement of a tensor of rank {rank}"
            raise OptionError(Diagnostic("invalid-placements", message, hint=_HINT))
    return TensorSharding(
        mesh_name,
        tuple(DimensionSharding(tuple(axes), is_closed=True) for axes in dims),
        unreduced_axes=tuple(unreduced),
    )
