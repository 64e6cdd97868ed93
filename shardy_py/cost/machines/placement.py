"""Placement of the axes of a mesh on the links of a machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from attrs import field

from shardy_py.cost.machines.machine import Link, Machine
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.sharding.axes import AxisRef, quote
from shardy_py.sharding.mesh import Mesh
from shardy_py.values import frozen

AxisLinks = Mapping[str, Sequence[str]]
"""Mesh axis to the names of the links it runs over, those along which device numbers change slowest first."""


@frozen
class LinkPart:
    """Some of the devices along a link: ``size`` of them, ``stride`` apart."""

    link: Link
    size: int
    stride: int = 1

    @property
    def is_closed(self) -> bool:
        """True if the devices form a ring."""
        return self.link.topology == "ring" and self.size * self.stride == self.link.size

    def __str__(self) -> str:
        apart = f", {self.stride} apart" if self.stride > 1 else ""
        return f"{self.size} of {self.link.size} along {self.link.name}{apart}"


@frozen
class MeshPlacement:
    """Lays meshes over a machine.

    Axes run over the links that the caller names. Where none are given and every axis has the name of a link, it runs
    over that one. Otherwise devices are numbered through the links as through the axes, the last ones fastest, so that
    an axis may take a part of a link, or several links.

    Args:
        machine: The machine.
        axes: The links of axes, as the caller names them; empty for none.
    """

    machine: Machine
    axes: AxisLinks = field(factory=dict, hash=False)
    _segments: dict[Mesh, dict[str, tuple[LinkPart, ...]]] = field(factory=dict, init=False, eq=False, repr=False)

    def parts(self, axes: Iterable[AxisRef], mesh: Mesh) -> tuple[LinkPart, ...]:
        """Return the parts of links that axes of a mesh run over together, in the order of the links.

        Raises:
            OptionError: the mesh does not fit the machine.
        """
        link_parts = self.links_of(mesh)
        ranges: dict[Link, list[tuple[int, int]]] = {}
        for axis in axes:
            for part in _sub_parts(axis, mesh, link_parts.get(axis.name, ())):
                ranges.setdefault(part.link, []).append((part.stride, part.stride * part.size))
        return tuple(
            LinkPart(link, end // start, start)
            for link in self.machine.links
            if link in ranges
            for start, end in _merged(ranges[link])
        )

    def links_of(self, mesh: Mesh) -> dict[str, tuple[LinkPart, ...]]:
        """Return the parts of links that every axis of a mesh runs over, major first.

        Raises:
            OptionError: the mesh does not fit the machine.
        """
        segments = self._segments.get(mesh)
        if segments is None:
            segments = self._segments[mesh] = self._place(mesh)
        return segments

    def _place(self, mesh: Mesh) -> dict[str, tuple[LinkPart, ...]]:
        links = {link.name: link for link in self.machine.links}
        if self.axes:
            return _by_choice(mesh, self.machine, self.axes, links)
        if mesh.total_size > self.machine.num_devices:
            message = f"the mesh {mesh} has {mesh.total_size} devices, the machine {self.machine.name!r} has"
            raise _misfit(f"{message} {self.machine.num_devices}", "describe a machine with as many devices")
        if all(axis.name in links and axis.size <= links[axis.name].size for axis in mesh.axes):
            return _by_name(mesh, self.machine, links)
        return _by_order(mesh, self.machine)


def _by_choice(
    mesh: Mesh, machine: Machine, axes: AxisLinks, links: Mapping[str, Link]
) -> dict[str, tuple[LinkPart, ...]]:
    result: dict[str, tuple[LinkPart, ...]] = {}
    for axis in mesh.axes:
        names = axes.get(axis.name)
        if names is None:
            if axis.size > 1:
                raise _misfit(f"no links are given for the axis {quote(axis.name)} of {mesh}", _choices(machine))
            names = ()
        unknown = [name for name in names if name not in links]
        if unknown:
            message = f"the machine {machine.name!r} has no link {unknown[0]!r}"
            message = f"{message}, which is given for the axis {quote(axis.name)}"
            raise _misfit(message, _choices(machine))
        chosen = [links[name] for name in names]
        parts = tuple(_overlaps(1, axis.size, chosen))
        if prod(part.size for part in parts) != axis.size:
            sizes = " x ".join(f"{link.name}={link.size}" for link in chosen) or "no link"
            message = f"the axis {axis} does not fit the links given for it, {sizes}"
            raise _misfit(message, _choices(machine))
        result[axis.name] = parts
    _refuse_shared(result)
    return result


def _refuse_shared(parts: Mapping[str, Sequence[LinkPart]]) -> None:
    owners: dict[str, str] = {}
    for axis, items in parts.items():
        for part in items:
            other = owners.setdefault(part.link.name, axis)
            if other != axis:
                message = f"the link {part.link.name!r} is given for the axes {quote(other)} and {quote(axis)}"
                raise _misfit(message, "give every axis links of its own")


def _by_name(mesh: Mesh, machine: Machine, links: Mapping[str, Link]) -> dict[str, tuple[LinkPart, ...]]:
    for axis in mesh.axes:
        if links[axis.name].size % axis.size:
            message = f"the axis {axis} does not divide the link {axis.name!r} of the machine {machine.name!r}"
            raise _misfit(f"{message}, which has {links[axis.name].size} devices", _choices(machine))
    return {axis.name: (LinkPart(links[axis.name], axis.size),) for axis in mesh.axes}


def _by_order(mesh: Mesh, machine: Machine) -> dict[str, tuple[LinkPart, ...]]:
    result: dict[str, tuple[LinkPart, ...]] = {}
    stride = 1
    for axis in reversed(mesh.axes):
        parts = tuple(_overlaps(stride, stride * axis.size, machine.links))
        if prod(part.size for part in parts) != axis.size:
            sizes = ", ".join(f"{link.name}={link.size}" for link in machine.links)
            message = f"the axis {axis} of {mesh} cannot be laid over the links of the machine {machine.name!r}"
            raise _misfit(f"{message}, {sizes}", _choices(machine))
        result[axis.name] = parts
        stride *= axis.size
    return result


def _overlaps(start: int, end: int, links: Sequence[Link]) -> Iterator[LinkPart]:
    """Yield the parts of links under devices numbered by strides from ``start`` up to ``end``, major first."""
    parts: list[LinkPart] = []
    low = 1
    for link in reversed(links):
        high = low * link.size
        first, last = max(start, low), min(end, high)
        if first < last and first % low == 0 and last % first == 0 and high % last == 0:
            parts.append(LinkPart(link, last // first, first // low))
        low = high
    yield from reversed(parts)


def _sub_parts(axis: AxisRef, mesh: Mesh, parts: Sequence[LinkPart]) -> Iterator[LinkPart]:
    """Yield the parts of the links of a full axis that the axis, or a part of it, covers."""
    if axis.sub_axis is None:
        yield from parts
        return
    full = mesh.axis_size(axis.name)
    end = full // axis.sub_axis.pre_size
    covered = [Link(str(index), part.size, 0.0) for index, part in enumerate(parts)]
    covered_parts = list(_overlaps(end // axis.sub_axis.size, end, covered))
    if prod(part.size for part in covered_parts) != axis.sub_axis.size:
        message = f"the axis {axis} cannot be laid over the links of the axis {quote(axis.name)}"
        raise _misfit(message, "use a machine whose links are not cut by it")
    for part in covered_parts:
        outer = parts[int(part.link.name)]
        yield LinkPart(outer.link, part.size, outer.stride * part.stride)


def _merged(ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield ranges of strides, sorted; those that touch become one."""
    pending: tuple[int, int] | None = None
    for start, end in sorted(ranges):
        if pending is not None and start <= pending[1]:
            pending = (pending[0], max(pending[1], end))
            continue
        if pending is not None:
            yield pending
        pending = (start, end)
    if pending is not None:
        yield pending


def _choices(machine: Machine) -> str:
    sizes = ", ".join(f"{link.name}={link.size}" for link in machine.links)
    return f"say which links each axis runs over, for example data={machine.links[0].name}; the links are {sizes}"


def _misfit(message: str, hint: str) -> OptionError:
    return OptionError(Diagnostic("mesh-does-not-fit", message, hint=hint))
