"""Axis references and sub-axes with their algebra, and the base class of all attribute values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Protocol

from attrs import field

from shardy_py.values import frozen


class SdyAttribute:
    """A value that can be an attribute of an op, such as ``#sdy.sharding<...>``.

    Attributes:
        mnemonic: The name of the attribute.
        is_array: Whether it is a mere array, which MLIR writes inside the brackets: ``#sdy<manual_axes{"x"}>``.
    """

    __slots__ = ()

    mnemonic: ClassVar[str]
    is_array: ClassVar[bool] = False


_PLAIN = re.compile(r"[ !#-\[\]-~]*").fullmatch


def _escape(char: str) -> str:
    if char == "\\":
        return "\\\\"
    if char != '"' and " " <= char <= "~":
        return char
    # What MLIR has as bytes that are not UTF-8 is written back as these; other surrogates are not characters at all.
    errors = "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:02X}" for byte in char.encode("utf-8", errors))


def quote(name: str) -> str:
    """Return a string in MLIR's quoted form: a doubled backslash, all other special bytes as two hex digits."""
    return f'"{name}"' if _PLAIN(name) else '"' + "".join(_escape(char) for char in name) + '"'


class AxisSizes(Protocol):
    """Sizes of axes by name, as a `Mesh` has them."""

    def axis_size(self, name: str, /) -> int:
        """Return the size of an axis."""
        ...


@frozen(order=True)
class SubAxis:
    """A part of an axis: ``size`` devices after the first ``pre_size``, printed ``(pre_size)size``."""

    pre_size: int
    size: int

    @property
    def next_pre_size(self) -> int:
        """The pre-size of the sub-axis that would follow this one."""
        return self.pre_size * self.size

    def __str__(self) -> str:
        return f"({self.pre_size}){self.size}"


@frozen(cache_hash=True)
class AxisRef:
    """A reference to a full axis of a mesh, or to a sub-axis of one.

    >>> str(AxisRef("x", SubAxis(2, 4)))
    '"x":(2)4'
    """

    name: str
    sub_axis: SubAxis | None = field(default=None)

    @property
    def pre_size(self) -> int:
        """The product of the sizes of the parts before this one; 1 for a full axis."""
        return self.sub_axis.pre_size if self.sub_axis else 1

    def __str__(self) -> str:
        return f"{quote(self.name)}:{self.sub_axis}" if self.sub_axis else quote(self.name)

    def size(self, mesh: AxisSizes) -> int:
        """Return the number of shards along this axis."""
        return self.sub_axis.size if self.sub_axis else mesh.axis_size(self.name)

    def next_pre_size(self, mesh: AxisSizes) -> int:
        """Return the pre-size of the following sub-axis, or the size of the full axis."""
        return self.sub_axis.next_pre_size if self.sub_axis else mesh.axis_size(self.name)

    def contains(self, other: AxisRef) -> bool:
        """Return whether all of ``other`` lies inside this axis."""
        if self.name != other.name:
            return False
        if self.sub_axis is None:
            return True
        if other.sub_axis is None:
            return False
        return (
            self.sub_axis.pre_size <= other.sub_axis.pre_size
            and self.sub_axis.next_pre_size >= other.sub_axis.next_pre_size
        )

    def prefix_of(self, other: AxisRef) -> bool:
        """Return whether ``other`` starts with this axis (or equals it)."""
        return other.contains(self) and self.pre_size == other.pre_size

    def suffix_of(self, other: AxisRef, mesh: AxisSizes) -> bool:
        """Return whether ``other`` ends with this axis (or equals it)."""
        return other.contains(self) and self.next_pre_size(mesh) == other.next_pre_size(mesh)

    def overlaps(self, other: AxisRef) -> bool:
        """Return whether the two share any part of an axis."""
        if self.name != other.name:
            return False
        if self.sub_axis is None or other.sub_axis is None:
            return True
        return (
            self.sub_axis.pre_size < other.sub_axis.next_pre_size
            and other.sub_axis.pre_size < self.sub_axis.next_pre_size
        )

    def can_coexist(self, other: AxisRef) -> bool:
        """Return whether a common factorisation of the axis has both as products of its parts."""
        if self.name != other.name or self.sub_axis is None or other.sub_axis is None:
            return True
        pre_min, pre_max = sorted((self.sub_axis.pre_size, other.sub_axis.pre_size))
        next_min, next_max = sorted((self.sub_axis.next_pre_size, other.sub_axis.next_pre_size))
        if next_min > pre_max:
            return pre_max % pre_min == 0 and next_max % next_min == 0 and next_min % pre_max == 0
        return pre_max % next_min == 0

    def overlap(self, other: AxisRef) -> AxisRef | None:
        """Return the common part, or None where there is none."""
        if not self.overlaps(other) or not self.can_coexist(other):
            return None
        if self.sub_axis is None:
            return other
        if other.sub_axis is None:
            return self
        start = max(self.sub_axis.pre_size, other.sub_axis.pre_size)
        end = min(self.sub_axis.next_pre_size, other.sub_axis.next_pre_size)
        return AxisRef(self.name, SubAxis(start, end // start))

    def prefix_without_overlap(self, other: AxisRef) -> AxisRef | None:
        """Return the largest prefix that shares nothing with ``other``, or None."""
        if not self.can_coexist(other):
            return None
        if not self.overlaps(other):
            return self
        if self.pre_size >= other.pre_size:
            return None
        return AxisRef(self.name, SubAxis(self.pre_size, other.pre_size // self.pre_size))

    def suffix_without_overlap(self, other: AxisRef, mesh: AxisSizes) -> AxisRef | None:
        """Return the largest suffix that shares nothing with ``other``, or None."""
        if not self.can_coexist(other):
            return None
        if not self.overlaps(other):
            return self
        end, other_end = self.next_pre_size(mesh), other.next_pre_size(mesh)
        if end <= other_end:
            return None
        return AxisRef(self.name, SubAxis(other_end, end // other_end))

    def greatest_common_prefix(self, other: AxisRef) -> AxisRef | None:
        """Return the longer common prefix of the two, or None."""
        if not self.can_coexist(other):
            return None
        if self.prefix_of(other):
            return self
        if other.prefix_of(self):
            return other
        return None

    def can_merge(self, other: AxisRef) -> bool:
        """Return whether ``other`` is the sub-axis that directly follows this one."""
        if self.name != other.name or self.sub_axis is None or other.sub_axis is None:
            return False
        return self.sub_axis.next_pre_size == other.sub_axis.pre_size

    def merge(self, other: AxisRef, mesh: AxisSizes) -> AxisRef:
        """Return this axis followed by ``other`` as one axis.

        Raises:
            ValueError: ``other`` does not directly follow this axis.
        """
        if not self.can_merge(other):
            raise ValueError(f"{other} does not follow {self}")
        return make_axis(self.name, self.pre_size, self.size(mesh) * other.size(mesh), mesh)


def make_axis(name: str, pre_size: int, size: int, mesh: AxisSizes) -> AxisRef:
    """Return a sub-axis, or the full axis where the part is all of it."""
    if pre_size == 1 and size == mesh.axis_size(name):
        return AxisRef(name)
    return AxisRef(name, SubAxis(pre_size, size))


def add_axis_or_merge(axes: list[AxisRef], axis: AxisRef, mesh: AxisSizes) -> None:
    """Append ``axis`` to ``axes`` in place, merged with the last one where that is possible."""
    if axes and axes[-1].can_merge(axis):
        axes[-1] = axes[-1].merge(axis, mesh)
    else:
        axes.append(axis)


def prefix_without_overlap(axis: AxisRef, others: Iterable[AxisRef]) -> AxisRef | None:
    """Return the largest prefix of ``axis`` that shares nothing with any of ``others``, or None."""
    result: AxisRef | None = axis
    for other in others:
        if result is None:
            return None
        if result.name == other.name:
            result = result.prefix_without_overlap(other)
    return result


def axes_size(axes: Iterable[AxisRef], mesh: AxisSizes) -> int:
    """Return the product of the sizes of ``axes``."""
    total = 1
    for axis in axes:
        total *= axis.size(mesh)
    return total
