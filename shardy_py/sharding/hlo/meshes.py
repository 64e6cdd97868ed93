"""The meshes that shardings of HLO imply: their common factors as axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from attrs import define

from shardy_py.sharding.hlo.digits import Digits
from shardy_py.sharding.hlo.sharding import HloSharding
from shardy_py.sharding.hlo.tiles import TileAssignment
from shardy_py.sharding.mesh import Mesh, MeshAxis


def derive_meshes(shardings: Iterable[HloSharding], *, device_count: int | None = None) -> tuple[Mesh, ...]:
    """Return the meshes over which shardings can be said by axes; one is enough unless devices are in several orders.

    Axes are called ``_axis_0``, ``_axis_1`` and so on, as XLA calls those of the meshes it derives. Where the tiles
    of two shardings have no common factors, what they are parts of stays one axis, of which they use sub-axes.

    Args:
        shardings: The shardings of a module.
        device_count: The number of devices if no sharding tells.

    >>> from shardy_py.sharding.hlo import parse_hlo_sharding
    >>> derive_meshes(map(parse_hlo_sharding, ["{devices=[2,4]<=[8]}", "{devices=[4,2]<=[8]}"]))
    (Mesh('<["_axis_0"=2, "_axis_1"=2, "_axis_2"=2]>'),)
    """
    orders: list[_Order] = []
    for sharding in dict.fromkeys(leaf for item in shardings for leaf in _leaves(item)):
        if sharding.tiles is None:
            continue
        found = next((order for order in orders if order.take(sharding)), None)
        if found is None:
            orders.append(_new_order(sharding, sharding.tiles))
    if not orders and device_count is not None:
        orders.append(_Order((), device_count, set()))
    return tuple(order.mesh() for order in orders)


def _leaves(sharding: HloSharding) -> Iterator[HloSharding]:
    if sharding.kind != "tuple":
        yield sharding
    for element in sharding.elements:
        yield from _leaves(element)


@define
class _Order:
    """An order of devices, and where the digits of their positions begin and end.

    Args:
        devices: The devices by position; () for 0, 1, 2...
        count: Their number.
        ends: The strides and ends of all digits.
    """

    devices: tuple[int, ...]
    count: int
    ends: set[int]

    def take(self, sharding: HloSharding) -> bool:
        """Add the digits of a sharding; return False if it cannot be said by digits in this order."""
        if sharding.tiles is None or sharding.tiles.size != self.count:
            return False
        digits = sharding.digits(self.devices)
        if digits is None:
            return False
        self.ends.update(_ends(digits, sharding))
        return True

    def mesh(self) -> Mesh:
        """Return the mesh whose axes are the parts between those ends that fit to all others."""
        ends = self.ends | {1, self.count}
        fitting = sorted(end for end in ends if all(end % other == 0 or other % end == 0 for other in ends))
        sizes = [after // before for before, after in pairwise(fitting)][::-1] or [1]
        return Mesh(tuple(MeshAxis(f"_axis_{number}", size) for number, size in enumerate(sizes)), self.devices)


def _new_order(sharding: HloSharding, tiles: TileAssignment) -> _Order:
    """Return the order 0, 1, 2... if a sharding can be said in it, else the order of its tiles."""
    plain = _Order((), tiles.size, set())
    if plain.take(sharding):
        return plain
    own = _Order(tiles.devices, tiles.size, set())
    own.take(sharding)
    return own


def _ends(digits: Sequence[Digits], sharding: HloSharding) -> Iterator[int]:
    """Return where digits begin and end, except those of devices that have the same."""
    kinds: list[str] = ["dim"] * (len(digits) - len(sharding.subgroups)) + list(sharding.subgroups)
    for kind, dim in zip(kinds, digits, strict=True):
        for digit in dim if kind != "replicated" else ():
            yield digit.stride
            yield digit.end
