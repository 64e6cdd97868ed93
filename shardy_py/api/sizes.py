"""How many bytes of a tensor lie on one device."""

from __future__ import annotations

import re
from math import prod

from shardy_py.ir.types import TensorType, Type
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

_NUMBER = re.compile(r"^(?:[su]?i|f|bf|tf)(\d+)")
_QUANTIZED = re.compile(r"^!quant\.uniform<([^:<]+)")
_COMPLEX = re.compile(r"^complex<(.*)>$")


def element_bits(element_type: str) -> int | None:
    """Return the bits one element takes in memory, or None where the type does not say.

    A boolean takes a byte, as XLA stores it; the 4-bit types take 4 bits.

    >>> [element_bits(name) for name in ("f32", "bf16", "i1", "ui4", "f8E4M3FN", "complex<f64>", "!toy.t")]
    [32, 16, 8, 4, 8, 128, None]
    """
    if element_type in ("i1", "index"):
        return 8 if element_type == "i1" else 64
    if match := _COMPLEX.match(element_type):
        half = element_bits(match[1])
        return None if half is None else 2 * half
    if match := _QUANTIZED.match(element_type):
        return element_bits(match[1])
    if match := _NUMBER.match(element_type):
        return 32 if element_type == "tf32" else int(match[1])
    return None


def local_shape(shape: tuple[int, ...], sharding: TensorSharding | None, mesh: Mesh | None) -> tuple[int, ...]:
    """Return the sizes of the largest shard: every dimension divided by its axes, rounded up."""
    if sharding is None or mesh is None:
        return shape
    return tuple(-(-size // axes_size(dim.axes, mesh)) for size, dim in zip(shape, sharding.dim_shardings, strict=True))


def tensor_bytes(type_: Type, sharding: TensorSharding | None = None, mesh: Mesh | None = None) -> int | None:
    """Return the bytes of a tensor, or of its largest shard, rounded up; None where a size is not known."""
    if not isinstance(type_, TensorType) or not type_.is_static:
        return None
    bits = element_bits(type_.element_type)
    if bits is None:
        return None
    elements = prod(local_shape(type_.shape, sharding, mesh))  # type: ignore[arg-type]
    return -(-elements * bits // 8)
