"""Convert shardings over meshes to shardings of HLO and back, and derive the meshes that shardings of HLO imply."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.sharding.axes import AxisRef, add_axis_or_merge, make_axis
from shardy_py.sharding.hlo.sharding import HloSharding, Subgroup
from shardy_py.sharding.hlo.tiles import (
    Digit,
    Digits,
    TileAssignment,
    complement,
    count_devices,
    cut,
    digits_of,
    positions_of,
)
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import define


def to_hlo_sharding(sharding: TensorSharding, mesh: Mesh, *, manual_axes: Collection[str] = ()) -> HloSharding:
    """Return a sharding in the terms of HLO, as XLA itself converts it (``convertToHloSharding`` upstream).

    What HLO has no words for is lost: open dimensions, priorities, explicitly replicated axes, and by what partial
    results are reduced.

    Args:
        sharding: The sharding.
        mesh: Its mesh.
        manual_axes: The axes that are manual where the value is; axes of the sharding among them are left out.

    Raises:
        VerificationError: an axis is not in the mesh, or axes overlap.

    >>> from shardy_py.sharding import parse_tensor_sharding
    >>> print(to_hlo_sharding(parse_tensor_sharding('<@mesh, [{"y"}, {}]>'), Mesh.of(x=4, y=2)))
    {devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}
    """
    if mesh.is_maximal:
        return HloSharding.maximal(mesh.device_ids[0])
    axis_digits = _axis_digits(mesh)
    dims = [
        tuple(_digit(axis, mesh, axis_digits) for axis in dim.axes if axis.name not in manual_axes)
        for dim in sharding.dim_shardings
    ]
    manual = tuple(digit for name, digit in axis_digits.items() if name in manual_axes)
    unreduced = tuple(
        _digit(axis, mesh, axis_digits) for axis in sharding.unreduced_axes if axis.name not in manual_axes
    )
    used = [digit for digits in (*dims, manual, unreduced) for digit in digits]
    rest = complement(used, mesh.total_size)
    if count_devices(used) * count_devices(rest) != mesh.total_size:
        message = f"axes overlap in {sharding} over the mesh {mesh}"
        raise VerificationError(Diagnostic("overlapping-axes", message))
    groups: dict[Subgroup, Digits] = {"manual": manual, "unreduced": unreduced, "replicated": rest}
    groups = {kind: digits for kind, digits in groups.items() if count_devices(digits) > 1}
    if mesh.total_size == 1:
        return HloSharding.replicated()
    return HloSharding.tiled(_tiles([*dims, *groups.values()], mesh), tuple(groups))


def from_hlo_sharding(
    sharding: HloSharding, mesh: Mesh, *, rank: int, mesh_name: str | Mesh = "mesh", open_dims: Collection[int] = ()
) -> TensorSharding:
    """Convert a sharding of HLO to a sharding over the axes of a mesh.

    Args:
        sharding: The sharding, not of a tuple. Manual subgroups are left out, see `manual_axes_of`.
        mesh: The mesh, for example one of `derive_meshes`.
        rank: The rank of the tensor.
        mesh_name: What to call the mesh.
        open_dims: The dimensions that may be sharded further; the others are closed.

    Returns:
        The sharding. A maximal one is over an inlined mesh of one device, an unknown one is open everywhere.

    Raises:
        VerificationError: the sharding is of another rank, or the mesh does not fit; see `fits_mesh`.

    >>> from shardy_py.sharding.hlo import parse_hlo_sharding
    >>> print(from_hlo_sharding(parse_hlo_sharding("{devices=[1,8]<=[4,2]T(1,0)}"), Mesh.of(x=4, y=2), rank=2))
    <@mesh, [{}, {"y", "x"}]>
    """
    if sharding.kind == "maximal":
        return TensorSharding(Mesh((), (sharding.device or 0,)))
    if sharding.kind == "unknown":
        return TensorSharding.fully_open(mesh_name, rank)
    unreduced: Sequence[AxisRef] = ()
    dims: Sequence[Sequence[AxisRef]] = [()] * rank
    if sharding.kind == "unreduced":
        unreduced = [AxisRef(axis.name) for axis in mesh.axes if axis.size > 1]
    elif sharding.kind == "tiled":
        if sharding.rank != rank:
            message = f"the sharding {sharding} is for rank {sharding.rank}, the tensor has rank {rank}"
            raise VerificationError(Diagnostic("rank-mismatch", message))
        axes = _required(_axes(sharding, mesh), sharding, mesh)
        dims = axes[:rank]
        unreduced = [axis for kind, group_axes in _groups(sharding, axes) if kind == "unreduced" for axis in group_axes]
    elif sharding.kind == "tuple":
        message = f"{sharding} is the sharding of a tuple"
        raise VerificationError(Diagnostic("tuple-sharding", message, hint="convert its elements"))
    return TensorSharding(
        mesh_name,
        tuple(DimensionSharding(tuple(axes), number not in open_dims) for number, axes in enumerate(dims)),
        unreduced_axes=tuple(sorted(unreduced, key=mesh.sort_key)),
    )


def manual_axes_of(sharding: HloSharding, mesh: Mesh) -> tuple[str, ...]:
    """Return the axes of a mesh that are manual in a sharding, in mesh order.

    Raises:
        VerificationError: the mesh does not fit, or a part of an axis is manual.
    """
    if sharding.kind == "manual":
        return tuple(axis.name for axis in mesh.axes)
    if sharding.kind != "tiled":
        return ()
    axes = _required(_axes(sharding, mesh), sharding, mesh)
    manual = [axis for kind, group_axes in _groups(sharding, axes) if kind == "manual" for axis in group_axes]
    if any(axis.sub_axis for axis in manual):
        message = f"a part of an axis of the mesh {mesh} is manual in {sharding}"
        raise VerificationError(Diagnostic("manual-sub-axis", message, hint="give a mesh whose axes are manual whole"))
    return tuple(axis.name for axis in sorted(manual, key=mesh.sort_key))


def fits_mesh(sharding: HloSharding, mesh: Mesh) -> bool:
    """Return whether axes and sub-axes of a mesh express a sharding, with its number and order of devices."""
    if sharding.kind == "tuple":
        return all(fits_mesh(element, mesh) for element in sharding.elements)
    return sharding.tiles is None or _axes(sharding, mesh) is not None


def find_mesh(sharding: HloSharding, meshes: Mapping[str, Mesh]) -> str | None:
    """Return the name of the first mesh that fits a sharding, or None."""
    return next((name for name, mesh in meshes.items() if mesh.axes and fits_mesh(sharding, mesh)), None)


def _axis_digits(mesh: Mesh) -> dict[str, Digit]:
    digits = digits_of([axis.size for axis in mesh.axes])
    return {axis.name: digit for axis, digit in zip(mesh.axes, digits, strict=True)}


def _digit(axis: AxisRef, mesh: Mesh, axis_digits: Mapping[str, Digit]) -> Digit:
    mesh.axis_size(axis.name)
    digit = axis_digits[axis.name]
    if axis.sub_axis is None:
        return digit
    return Digit(digit.end // axis.sub_axis.next_pre_size, axis.sub_axis.size)


def _ends(axis_digits: Mapping[str, Digit]) -> list[int]:
    return [digit.end for digit in axis_digits.values()]


def _tiles(dims: Sequence[Digits], mesh: Mesh) -> TileAssignment:
    sizes = [count_devices(digits) for digits in dims]
    digits = [digit for dim in dims for digit in dim]
    if not mesh.device_ids:
        return TileAssignment.of_digits(sizes, digits)
    return TileAssignment.of_devices(sizes, [mesh.device_ids[position] for position in positions_of(digits)])


def _axes(sharding: HloSharding, mesh: Mesh) -> list[list[AxisRef]] | None:
    """Return the axes of each dimension of the tiles, or None where the mesh does not fit.

    In what order devices come that have the same does not matter, so the axes of replicated ones are left out.
    """
    tiles = sharding.tiles
    if tiles is None or tiles.size != mesh.total_size:
        return None
    digits = sharding.digits(mesh.device_ids)
    if digits is None:
        return None
    axis_digits = _axis_digits(mesh)
    axes_of_dims: list[list[AxisRef]] = []
    kinds: list[str] = ["dim"] * (len(digits) - len(sharding.subgroups)) + list(sharding.subgroups)
    for kind, dim in zip(kinds, digits, strict=True):
        axes = _axes_of(dim, axis_digits, mesh) if kind != "replicated" else []
        if axes is None:
            return None
        axes_of_dims.append(axes)
    return axes_of_dims


def _axes_of(digits: Digits, axis_digits: Mapping[str, Digit], mesh: Mesh) -> list[AxisRef] | None:
    axes: list[AxisRef] = []
    for digit in cut(digits, _ends(axis_digits)):
        axis = _axis_of(digit, axis_digits, mesh)
        if axis is None:
            return None
        add_axis_or_merge(axes, axis, mesh)
    return axes


def _axis_of(digit: Digit, axis_digits: Mapping[str, Digit], mesh: Mesh) -> AxisRef | None:
    for name, axis in axis_digits.items():
        if axis.stride <= digit.stride and digit.end <= axis.end and axis.size > 1:
            if axis.end % digit.end or digit.stride % axis.stride:
                return None
            return make_axis(name, axis.end // digit.end, digit.size, mesh)
    return None


def _groups(sharding: HloSharding, axes: Sequence[Sequence[AxisRef]]) -> Iterable[tuple[Subgroup, Sequence[AxisRef]]]:
    """Return the subgroups with their axes."""
    count = len(sharding.subgroups)
    return zip(sharding.subgroups, axes[len(axes) - count :], strict=True)


def _required(axes: list[list[AxisRef]] | None, sharding: HloSharding, mesh: Mesh) -> list[list[AxisRef]]:
    if axes is None:
        message = f"the sharding {sharding} cannot be said by axes of the mesh {mesh}"
        hint = "give a mesh with as many devices in the same order, whose axes its tiles are parts of; or none"
        raise VerificationError(Diagnostic("mesh-mismatch", message, hint=hint))
    return axes


def derive_meshes(shardings: Iterable[HloSharding], *, device_count: int | None = None) -> tuple[Mesh, ...]:
    """Return meshes whose axes express all shardings: one mesh for each order of the devices.

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
            ends.update(_digit_ends(member.digits(self.devices) or (), member))
        fitting = sorted(end for end in ends if all(end % other == 0 or other % end == 0 for other in ends))
        sizes = [after // before for before, after in pairwise(fitting)][::-1] or [1]
        return Mesh(tuple(MeshAxis(f"_axis_{number}", size) for number, size in enumerate(sizes)), self.devices)


def _width(sharding: HloSharding) -> int:
    """Return the number of devices that have the same data, in no order."""
    tiles = sharding.tiles
    return tiles.dims[-1] if tiles is not None and "replicated" in sharding.subgroups else 1


def _sorted_devices(shardings: Sequence[HloSharding]) -> tuple[int, ...]:
    """Return the devices by their tiles in several shardings, the first of which counts most."""
    positions: dict[int, list[int]] = {}
    for sharding in shardings:
        width = _width(sharding)
        for position, device in enumerate(sharding.tiles.devices if sharding.tiles is not None else ()):
            positions.setdefault(device, []).append(position // width)
    return tuple(sorted(positions, key=lambda device: (positions[device], device)))


def _digit_ends(digits: Sequence[Digits], sharding: HloSharding) -> Iterator[int]:
    """Yield the strides at which digits begin and end, except digits of replicated devices."""
    kinds: list[str] = ["dim"] * (len(digits) - len(sharding.subgroups)) + list(sharding.subgroups)
    for kind, dim in zip(kinds, digits, strict=True):
        for digit in dim if kind != "replicated" else ():
            yield digit.stride
            yield digit.end
