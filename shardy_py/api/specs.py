"""Shardings as callers write them: PartitionSpecs, NamedShardings, placements of DTensor, Shardy's values and text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from shardy_py.api.meshes import as_mesh
from shardy_py.errors import Diagnostic, OptionError, ParseError
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_attribute, parse_tensor_sharding
from shardy_py.sharding.tensor import CLOSED, OPEN, DimensionSharding, TensorSharding, symbol
from shardy_py.support.arguments import shown

_HINT = (
    "give a PartitionSpec or a tuple of axis names, None and tuples of axis names; a NamedSharding; placements of "
    'DTensor; a TensorSharding; or text such as [{"data"}, {?}]'
)


_AXES = re.compile(r"\w+(\s*,\s*\w+)*")
"""Names of axes and None without the parentheses of a tuple."""


def mesh_of_spec(spec: Any) -> Mesh | None:
    """Return the mesh that a ``NamedSharding`` of JAX brings along, or None."""
    return as_mesh(spec.mesh) if _is_named_sharding(spec) else None


def memory_of_spec(spec: Any) -> str | None:
    """Return the memory that a ``NamedSharding`` of JAX names besides that in which its devices compute, or None."""
    kind = getattr(spec, "memory_kind", None) if _is_named_sharding(spec) else None
    if kind is None:
        return None
    try:
        default = spec.mesh.devices.flat[0].default_memory().kind
    except (AttributeError, ValueError):  # A mesh may be abstract, without devices.
        default = "device"
    return None if kind == default else kind


def as_sharding(spec: Any, *, rank: int, mesh_name: str, mesh: Mesh) -> TensorSharding:
    """Return any form of sharding as a `TensorSharding`.

    A dimension that a PartitionSpec leaves out or gives as None is closed, as in JAX; ``UNCONSTRAINED`` makes it open.

    Args:
        spec: The sharding in one of the accepted forms.
        rank: The rank of the tensor; shorter PartitionSpecs are filled up.
        mesh_name: The mesh of a spec that names none.
        mesh: That mesh.

    Raises:
        OptionError: it has none of the accepted forms.
        ParseError: it is text that does not parse.
    """
    if isinstance(spec, TensorSharding):
        return spec
    if isinstance(spec, str):
        return _from_text(spec, mesh_name)
    if _is_named_sharding(spec):
        spec = spec.spec
    if is_placements(spec):
        return from_placements(spec, rank=rank, mesh_name=mesh_name, mesh=mesh)
    entries = _entries(spec)
    if not isinstance(entries, Sequence):
        raise OptionError(Diagnostic("invalid-sharding", f"{shown(spec)} is not a sharding", hint=_HINT))
    dims = [_dimension(entry) for entry in entries]
    dims += [CLOSED] * (rank - len(dims))
    unreduced = [AxisRef(name) for name in getattr(spec, "unreduced", None) or ()]
    return TensorSharding(mesh_name, tuple(dims), unreduced_axes=tuple(sorted(unreduced, key=mesh.sort_key)))


def parse_spec(text: str) -> Any:
    """Return the sharding a command line gives: ``data,None,(data,model)`` or Shardy's own text.

    Raises:
        ParseError: the parentheses are not balanced.
    """
    text = text.strip()
    if is_text(text):
        return text
    entries: list[Any] = []
    group: list[str] | None = None
    for token in text.replace("(", ",(,").replace(")", ",),").split(","):
        token = token.strip()
        if not token:
            continue
        if token == "(" and group is None:
            group = []
        elif token == ")" and group is not None:
            entries.append(tuple(group))
            group = None
        elif token in "()":
            raise ParseError(Diagnostic("invalid-sharding", f"unbalanced parentheses in {text!r}", hint=_HINT))
        elif group is not None:
            group.append(token)
        else:
            entries.append(None if token == "None" else token)
    if group is not None:
        raise ParseError(Diagnostic("invalid-sharding", f"unbalanced parentheses in {text!r}", hint=_HINT))
    return tuple(entries)


def is_text(spec: str) -> bool:
    """Return whether a text is in Shardy's notation, not the name of an axis."""
    return spec.strip().startswith(("[", "<", "#"))


def _is_named_sharding(spec: Any) -> bool:
    return hasattr(spec, "spec") and hasattr(spec, "mesh")


def _entries(spec: Any) -> Any:
    """Return the entries of a PartitionSpec; anything else as it is.

    Iterating over one fails where it has unreduced axes. The attribute is public since jax 0.10.
    """
    return getattr(spec, "partitions", getattr(spec, "_partitions", spec))


def _from_text(text: str, mesh_name: str) -> TensorSharding:
    text = text.strip()
    if not is_text(text):
        hint = f"give {parse_spec(text)!r}, with one entry per dimension" if _AXES.fullmatch(text) else _HINT
        raise OptionError(Diagnostic("invalid-sharding", f"{shown(text)} is not a sharding", hint=hint))
    if text.startswith("#"):
        value = parse_attribute(text)
        if isinstance(value, TensorSharding):
            return value
        raise ParseError(Diagnostic("invalid-sharding", f"{text} is not a tensor sharding", hint=_HINT))
    if text.startswith("["):
        text = f"<{symbol(mesh_name)}, {text}>"
    return parse_tensor_sharding(text)


def _dimension(entry: Any) -> DimensionSharding:
    if isinstance(entry, DimensionSharding):
        return entry
    if entry is None:
        return CLOSED
    if type(entry).__name__ == "UnconstrainedSingleton":
        return OPEN
    if isinstance(entry, str):
        return DimensionSharding((AxisRef(entry),))
    if isinstance(entry, Sequence) and all(isinstance(name, str) for name in entry):
        return DimensionSharding(tuple(AxisRef(name) for name in entry))
    raise OptionError(Diagnostic("invalid-sharding", f"{shown(entry)} is not the sharding of a dimension", hint=_HINT))


_PLACEMENT_HINT = "give one of Replicate(), Shard(dim) and Partial() for each dimension of the mesh"


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
        raise OptionError(Diagnostic("invalid-placements", message, hint=_PLACEMENT_HINT))
    dims: list[list[AxisRef]] = [[] for _ in range(rank)]
    unreduced: list[AxisRef] = []
    # Each dimension of the mesh cuts before all later ones, and a strided one behind some of them.
    for axis, placement in reversed(list(zip(mesh.axes, placements, strict=False))):
        kind = type(placement).__name__
        if kind == "Shard" and -rank <= placement.dim < rank:
            dims[placement.dim].insert(0, AxisRef(axis.name))
        elif kind == "_StridedShard" and -rank <= placement.dim < rank:
            count = _count_before(dims[placement.dim], placement.split_factor, mesh)
            if count is None:
                message = f"{placement!r} along {axis.name!r} is behind no {placement.split_factor} parts"
                raise OptionError(Diagnostic("invalid-placements", message, hint=_PLACEMENT_HINT))
            dims[placement.dim].insert(count, AxisRef(axis.name))
        elif kind == "Partial" and placement.reduce_op == "sum":
            unreduced.insert(0, AxisRef(axis.name))
        elif kind != "Replicate":
            message = f"{placement!r} cannot be a placement of a tensor of rank {rank}"
            raise OptionError(Diagnostic("invalid-placements", message, hint=_PLACEMENT_HINT))
    return TensorSharding(
        mesh_name,
        tuple(DimensionSharding(tuple(axes), is_closed=True) for axes in dims),
        unreduced_axes=tuple(unreduced),
    )


def _count_before(axes: Sequence[AxisRef], parts: int, mesh: Mesh) -> int | None:
    """Return how many axes at the front cut a dimension into some parts, or None where none do."""
    sizes = [axes_size(axes[:count], mesh) for count in range(len(axes) + 1)]
    return sizes.index(parts) if parts in sizes else None
