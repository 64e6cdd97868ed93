"""Bytes of a tensor on one device."""

from __future__ import annotations

from math import prod

from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding


def local_shape(shape: tuple[int, ...], sharding: TensorSharding | None, mesh: Mesh | None) -> tuple[int, ...]:
    """Return the sizes of the largest shard: every dimension divided by its axes, rounded up."""
    # A sharding over a single device has no dimensions, whatever the tensor has.
    if sharding is None or mesh is None or mesh.is_maximal:
        return shape
    return tuple(-(-size // axes_size(dim.axes, mesh)) for size, dim in zip(shape, sharding.dim_shardings, strict=True))


def tensor_bytes(type_: Type, sharding: TensorSharding | None = None, mesh: Mesh | None = None) -> int | None:
    """Return the bytes of a tensor, or of its largest shard, rounded up; None where a size is not known."""
    if not isinstance(type_, TensorType) or not type_.is_static:
        return None
    from shardy_py.support.element_types import mlir_element_bits

    bits = mlir_element_bits(type_.element_type)
    if bits is None:
        return None
    elements = prod(local_shape(type_.shape, sharding, mesh))  # type: ignore[arg-type]
    return -(-elements * bits // 8)
