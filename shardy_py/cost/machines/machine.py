"""Machines: how many devices, how fast each computes, and what connects them.

Sizes are in bytes, times in seconds, rates per second. A machine is data: `read_machine` of
`shardy_py.cost.machines.toml` reads one from TOML, and some come along.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal, get_args

from attrs import field

from shardy_py.support.element_types import mlir_element_bits
from shardy_py.values import frozen

Topology = Literal["ring", "line", "all-to-all"]
TOPOLOGIES: tuple[str, ...] = get_args(Topology)


@frozen
class Link:
    """A dimension of the grid of devices, with the links along it.

    Args:
        name: The name of the dimension, for example ``x`` or ``node``.
        size: The number of devices along it.
        bandwidth: The bytes per second that a device sends over one link, in one direction.
        latency: The seconds before the first byte of a message arrives.
        topology: ``ring``: a link to either neighbour, and from the last device to the first; ``line``: the
            same without the closing link; ``all-to-all``: one link into a switch that reaches any other device.
    """

    name: str
    size: int
    bandwidth: float
    latency: float = 0.0
    topology: Topology = "ring"


@frozen
class Machine:
    """Equal devices in a grid.

    Args:
        name: The name in reports.
        links: The dimensions of the grid, those along which device numbers change slowest first.
        flops: Element type in MLIR's notation to the peak operations per second of one device; ``default`` stands for
            the types that are not listed, ``f8`` for all of 8 bits.
        memory_bytes: The bytes of memory of one device; a larger peak is noted.
        memory_bandwidth: The bytes per second between that memory and the device.
        profile: The rules of the compiler for it: ``xla-cpu``, ``xla-gpu`` or ``none``.
    """

    name: str
    links: tuple[Link, ...]
    flops: Mapping[str, float] = field(hash=False)
    memory_bytes: int
    memory_bandwidth: float
    profile: str = "none"

    @property
    def num_devices(self) -> int:
        """The number of devices."""
        return prod(link.size for link in self.links)

    def peak(self, element_type: str) -> tuple[float, str]:
        """Return the peak operations per second on an element type, and the key of `flops` that says so.

        A type that is not listed counts as the listed type of the same kind with the next larger width: ``f16`` as
        ``bf16``, ``i1`` as ``i8``.
        """
        key = next((key for key in _alike(element_type) if key in self.flops), "default")
        return self.flops[key], key


_FLOATS = {8: ("f8", "bf16", "f16"), 16: ("bf16", "f16", "f32"), 32: ("f32", "f64"), 64: ("f64",)}
_INTEGERS = ("i4", "i8", "i16", "i32", "i64")


def _alike(element_type: str) -> tuple[str, ...]:
    """Return the keys that may stand for an element type, the best first."""
    bits = mlir_element_bits(element_type) or 0
    if element_type.startswith("complex<"):
        return (element_type, *_alike(element_type[len("complex<") : -1])[:1], *_FLOATS.get(bits // 2, ()))
    if element_type.startswith(("f", "bf", "tf")):
        wide = next((width for width in _FLOATS if bits <= width), 64)
        return (element_type, *_FLOATS[wide])
    if element_type.lstrip("su").startswith("i"):
        return (element_type, *(name for name in _INTEGERS if int(name[1:]) >= bits))
    return (element_type,)
