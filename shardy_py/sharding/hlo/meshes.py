"""The meshes that shardings of HLO imply: their common factors as axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from shardy_py.sharding.hlo.digits import Digits
from shardy_py.sharding.hlo.sharding import HloSharding
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.values import define


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
    # Those that say most about the order of the devices come first.
    for sharding in sorted(dict.fromkeys(leaf for item in shardings for leaf in _leaves(item)), key=_width):
        tiles = sharding.tiles
        if tiles is None or any(order.take(sharding) for order in orders):
            continue
        plain = _Order((), tiles.size, [])
        order = plain if plain.take(sharding) else _Order(_sorted_devices([sharding]), tiles.size, [sharding])
        orders.append(order)
    if not orders and device_count is not None:
        orders.append(_Order((), device_count, []))
    return tuple(order.mesh() for order in orders)


def _leaves(sharding: HloSharding) -> Iterator[HloSharding]:
    if sharding.kind != "tuple":
        yield sharding
    for element in sharding.elements:
        yield from _leaves(element)


@define
class _Order:
    """An order of devices, with shardings that can be said by digits of positions in it.

    Args:
        devices: The devices by position; () for 0, 1, 2...
        count: Their number.
        members: The shardings.
    """

    devices: tuple[int, ...]
    count: int
    members: list[HloSharding]

    def take(self, sharding: HloSharding) -> bool:
        """Add a sharding, if need be by another order of devices that the members leave open; return if that can be."""
        if sharding.tiles is None or sharding.tiles.size != self.count:
            return False
        members = [*self.members, sharding]
        if sharding.digits(self.devices) is None:
            devices = _sorted_devices(members)
            if not self.devices or any(member.digits(devices) is None for member in members):
                return False
            self.devices = devices
        self.members = members
        return True

    def mesh(self) -> Mesh:
        """Return the mesh whose axes are the parts of positions that fit to those of all members."""
        ends = {1, self.count}
        for member in self.members:
            ends.update(_ends(member.digits(self.devices) or (), member))
        fitting = sorted(end for end in ends if all(end % other == 0 or other % end == 0 for other in ends))
        sizes = [after // before for before, after in pairwise(fitting)][::-1] or [1]
        return Mesh(tuple(MeshAxis(f"_axis_{number}", size) for number, size in enumerate(sizes)), self.devices)


def _width(sharding: HloSharding) -> int:
    """Return the number of devices that have the same data, in no order."""
    tiles = sharding.tiles
    return tiles.dims[-1] if tiles is not None and "replicated" in sharding.subgroups else 1


def _sorted_devices(shardings: Sequence[HloSharding]) -> tuple[int, ...]:
    """Return the devices by their tiles in several shardings, the first of which counts most."""
    places: dict[int, list[int]] = {}
    for sharding in shardings:
        width = _width(sharding)
        for place, device in enumerate(sharding.tiles.devices if sharding.tiles is not None else ()):
            places.setdefault(device, []).append(place // width)
    return tuple(sorted(places, key=lambda device: (places[device], device)))


def _ends(digits: Sequence[Digits], sharding: HloSharding) -> Iterator[int]:
    """Return the places where digits begin and end, except those of devices that have the same data."""
    kinds: list[str] = ["dim"] * (len(digits) - len(sharding.subgroups)) + list(sharding.subgroups)
    for kind, dim in zip(kinds, digits, strict=True):
        for digit in dim if kind != "replicated" else ():
            yield digit.stride
            yield digit.end
