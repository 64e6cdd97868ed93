"""Meshes: named axes over devices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod
from typing import ClassVar

from attrs import field

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.sharding.axes import AxisRef, SdyAttribute, quote
from shardy_py.support.arguments import shown
from shardy_py.values import define, frozen


@frozen
class MeshAxis:
    """A named axis of a mesh and its size, printed ``"x"=2``."""

    name: str
    size: int

    def __str__(self) -> str:
        return f"{quote(self.name)}={self.size}"


_MOST_DEVICES_SHOWN = 32


def _drop_iota(device_ids: tuple[int, ...], axes: tuple[MeshAxis, ...]) -> tuple[int, ...]:
    """Return () for the identity order, which is the default; anything else unchanged."""
    if not axes or len(device_ids) != prod(axis.size for axis in axes):
        return device_ids
    return () if all(index == device for index, device in enumerate(device_ids)) else device_ids


@define(frozen=True, slots=False, cache_hash=True, repr=False)
class Mesh(SdyAttribute):
    """Axes with their sizes, and the order of the devices where it is not 0, 1, 2...

    A mesh without axes is empty; with one device id it is maximal (that one device).

    >>> str(Mesh.of(data=4, model=2))
    '<["data"=4, "model"=2]>'
    """

    mnemonic: ClassVar[str] = "mesh"

    axes: tuple[MeshAxis, ...] = ()
    device_ids: tuple[int, ...] = field(default=())

    def __attrs_post_init__(self) -> None:
        try:
            object.__setattr__(self, "axes", tuple(self.axes))
            object.__setattr__(self, "device_ids", _drop_iota(tuple(self.device_ids), self.axes))
        except (AttributeError, TypeError, ValueError):
            message = f"a mesh has axes and device ids, not {shown(self.axes)} and {shown(self.device_ids)}"
            hint = "Mesh.of(a=2), or Mesh((MeshAxis('a', 2),))"
            raise VerificationError(Diagnostic("invalid-mesh", message, hint=hint)) from None

    @classmethod
    def of(cls, sizes: Mapping[str, int] | None = None, /, **named: int) -> Mesh:
        """Return a mesh from axis names and sizes, in the given order."""
        return cls(tuple(MeshAxis(name, size) for name, size in {**(sizes or {}), **named}.items()))

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {axis.name: axis.size for axis in self.axes}

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {axis.name: index for index, axis in enumerate(self.axes)}

    @property
    def is_empty(self) -> bool:
        """True if the mesh has neither axes nor devices."""
        return not self.axes and not self.device_ids

    @property
    def is_maximal(self) -> bool:
        """True if the mesh is one single device."""
        return not self.axes and len(self.device_ids) == 1

    @property
    def total_size(self) -> int:
        """The number of devices."""
        return prod(axis.size for axis in self.axes)

    def has_axis(self, name: str) -> bool:
        """Return whether an axis of that name exists."""
        return name in self._sizes

    def axis_size(self, name: str) -> int:
        """Return the size of an axis.

        Raises:
            VerificationError: no axis of that name exists.
        """
        try:
            return self._sizes[name]
        except KeyError:
            known = ", ".join(str(axis) for axis in self.axes) or "none"
            raise VerificationError(
                Diagnostic("unknown-axis", f"unknown axis {quote(name)} in mesh {self}", hint=f"its axes are {known}")
            ) from None

    def equals(self, other: Mesh, *, ignore_device_ids: bool = False) -> bool:
        """Return whether two meshes are equal; the order of devices may be ignored."""
        if not ignore_device_ids:
            return self == other
        return self.is_maximal == other.is_maximal and self.axes == other.axes

    def sort_key(self, axis: AxisRef) -> tuple[int, int, int]:
        """Return the key that sorts axis references in mesh order, sub-axes by pre-size."""
        size = axis.sub_axis.size if axis.sub_axis else self.axis_size(axis.name)
        return (self._positions.get(axis.name, len(self.axes)), axis.pre_size, size)

    def __str__(self) -> str:
        return self._text(", ".join(str(device) for device in self.device_ids))

    def __repr__(self) -> str:
        """Return the text, with the first devices only where there are many."""
        if len(self.device_ids) <= _MOST_DEVICES_SHOWN:
            return self.repr_in_full()
        devices = ", ".join(str(device) for device in self.device_ids[:_MOST_DEVICES_SHOWN])
        return f"Mesh({self._text(f'{devices}, ... {len(self.device_ids)} in all')!r})"

    def repr_in_full(self) -> str:
        """Return the representation with all devices."""
        return f"Mesh({str(self)!r})"

    def _text(self, devices: str) -> str:
        axes = ", ".join(str(axis) for axis in self.axes)
        return f"<[{axes}], device_ids=[{devices}]>" if self.device_ids else f"<[{axes}]>"
