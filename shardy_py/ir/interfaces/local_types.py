"""The types of shards, and the error for an op that has no form on shards."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding


class CannotLocalize(UnsupportedError):
    """An op has no local form under its shardings."""


def no_local_form(reason: str) -> CannotLocalize:
    """Return the error for an op that has no local form under its shardings."""
    hint = "reshard its operands first, or give the op a local form, local=..., in its dialect"
    return CannotLocalize(Diagnostic("no-local-form", reason, hint=hint))


def local_type(type_: Type, sharding: TensorSharding | None, meshes: Mapping[str, Mesh]) -> Type:
    """Return the type of a shard of a tensor; a dimension that does not divide is padded at its high end.

    Raises:
        CannotLocalize: the size of a sharded dimension is not known.
    """
    if sharding is None or sharding.is_fully_replicated or not isinstance(type_, TensorType):
        return type_
    mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else meshes[sharding.mesh]
    shape = sharding.local_shape(type_.shape, mesh)
    for number, (size, dim) in enumerate(zip(shape, sharding.dim_shardings, strict=True)):
        if size is None and dim.sharded_size(mesh) > 1:
            raise no_local_form(f"dimension {number} of {type_} is dynamic and sharded")
    if type_.is_foreign:
        raise no_local_form(f"the sizes in {type_} are known to its dialect only")
    return TensorType(shape, type_.element_type)
