"""Layouts and what they are made of: tiles, splits, memory spaces. ``str(x)`` is XLA's text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import Attribute, field

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.support.arguments import INT64_MAX, as_integer, shown
from shardy_py.values import frozen

COMBINE = None
"""In a tile: this dimension is merged into the next more minor one before tiling; ``*`` in the text."""

_MAX_SPACE = 127
"""XLA keeps the number in a byte; what does not fit becomes another memory there, without a word."""


def invalid(code: str, message: str, hint: str = "") -> VerificationError:
    """Return the error of a value that breaks a rule."""
    return VerificationError(Diagnostic(code, message, hint=hint))


def integer(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    """Check that a field is an integer; for attrs.

    Raises:
        VerificationError: it is not.
    """
    number = as_integer(value)
    if number is None or abs(number) > INT64_MAX:
        message = f"{type(instance).__name__}: {attribute.name} is {shown(value)}, not an integer of 64 bits"
        raise invalid("invalid-argument", message)


def tuple_of(*classes: type) -> Any:
    """Return a validator: a field is a tuple of integers, or of instances of some classes; for attrs."""

    def check(instance: Any, attribute: Attribute[Any], value: Any) -> None:
        fits = isinstance(value, tuple) and all(
            isinstance(item, classes) or (int in classes and _is_integer(item)) for item in value
        )
        if not fits:
            names = " or ".join("None" if item is type(None) else item.__name__ for item in classes)
            message = f"{type(instance).__name__}: {attribute.name} is {shown(value)}, not a tuple of {names}"
            raise invalid("invalid-argument", message)

    return check


def instance(class_: type) -> Any:
    """Return a validator: a field is an instance of a class; for attrs."""

    def check(owner: Any, attribute: Attribute[Any], value: Any) -> None:
        if not isinstance(value, class_):
            message = f"{type(owner).__name__}: {attribute.name} is {shown(value)}, not a {class_.__name__}"
            raise invalid("invalid-argument", message)

    return check


def as_tuple(value: Any) -> Any:
    """Return a list as a tuple, anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


def _is_integer(value: object) -> bool:
    number = as_integer(value)
    return number is not None and abs(number) <= INT64_MAX


def _integers() -> Any:
    return field(converter=as_tuple, validator=tuple_of(int))


@frozen(cache_hash=True)
class Tile:
    """One level of tiling, applied to the most minor physical dimensions.

    Args:
        sizes: One positive size per dimension, or `COMBINE`; the last one is a size.

    >>> str(Tile((8, 128))), str(Tile((COMBINE, 2)))
    ('(8,128)', '(*,2)')
    """

    sizes: tuple[int | None, ...] = field(converter=as_tuple, validator=tuple_of(int, type(None)))

    def __attrs_post_init__(self) -> None:
        if not self.sizes:
            raise invalid("empty-tile", "a tile needs at least one size")
        for size in self.sizes:
            if size is not None and size <= 0:
                raise invalid("invalid-tile", f"the tile size {size} is not positive")
        if self.sizes[-1] is COMBINE:
            raise invalid("invalid-tile", "the last size of a tile cannot be '*': there is no more minor dimension")

    def __str__(self) -> str:
        return f"({','.join('*' if size is None else str(size) for size in self.sizes)})"


@frozen(cache_hash=True)
class Split:
    """Cuts of a dimension into pieces that lie in different memories.

    Args:
        dimension: The physical dimension, counted from the most major one, as XLA does.
        indices: The first index of every piece but the first; ascending.

    >>> str(Split(1, (128, 256)))
    '(1:128,256)'
    """

    dimension: int = field(validator=integer)
    indices: tuple[int, ...] = _integers()

    def __attrs_post_init__(self) -> None:
        if self.dimension < 0:
            raise invalid("invalid-split", f"the split dimension {self.dimension} is negative")
        if not self.indices:
            raise invalid("invalid-split", f"the split of dimension {self.dimension} names no index")
        for before, after in zip((0, *self.indices), self.indices, strict=False):
            if after <= before:
                raise invalid("invalid-split", f"the split index {after} is not greater than {before}")

    def __str__(self) -> str:
        return f"({self.dimension}:{','.join(map(str, self.indices))})"


@frozen(cache_hash=True, order=True)
class MemorySpace:
    """A memory of a device.

    Args:
        number: XLA's number.

    >>> MemorySpace(1).name, MemorySpace(7).name, str(MemorySpace(5))
    ('VMEM', 'device-specific 7', 'S(5)')
    """

    number: int = field(validator=integer)

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.number <= _MAX_SPACE:
            raise invalid("invalid-memory-space", f"the memory space {self.number} is not one of 0..{_MAX_SPACE}")

    @property
    def name(self) -> str:
        """The name of the memory: HBM, VMEM, host, or a number without a general meaning."""
        return {0: "HBM", 1: "VMEM", 5: "host"}.get(self.number, f"device-specific {self.number}")

    def __str__(self) -> str:
        return f"S({self.number})"


HBM = MemorySpace(0)
VMEM = MemorySpace(1)
HOST = MemorySpace(5)


@frozen(cache_hash=True)
class Layout:
    """The places of the elements of an array in memory.

    Args:
        minor_to_major: The dimensions from the fastest varying to the slowest; a permutation.
        tiles: Levels of tiling, each applied to the result of the one before.
        tail_padding: After tiling the number of elements is rounded up to a multiple of this.
        element_bits: The bits one element takes; 0 for whole bytes.
        memory_space: The memory.
        splits: Dimensions that are cut into pieces.

    >>> str(Layout((1, 0), (Tile((8, 128)), Tile((2, 1))), memory_space=VMEM))
    '{1,0:T(8,128)(2,1)S(1)}'
    """

    minor_to_major: tuple[int, ...] = _integers()
    tiles: tuple[Tile, ...] = field(default=(), converter=as_tuple, validator=tuple_of(Tile))
    tail_padding: int = field(default=1, kw_only=True, validator=integer)
    element_bits: int = field(default=0, kw_only=True, validator=integer)
    memory_space: MemorySpace = field(default=HBM, kw_only=True, validator=instance(MemorySpace))
    splits: tuple[Split, ...] = field(default=(), kw_only=True, converter=as_tuple, validator=tuple_of(Split))

    def __attrs_post_init__(self) -> None:
        if sorted(self.minor_to_major) != list(range(self.rank)):
            numbers = ",".join(map(str, self.minor_to_major))
            raise invalid("invalid-minor-to-major", f"{{{numbers}}} is not a permutation of 0..{self.rank - 1}")
        if self.tail_padding <= 0:
            raise invalid("invalid-tail-padding", f"the tail padding L({self.tail_padding}) is not positive")
        if self.element_bits < 0:
            raise invalid("invalid-element-bits", f"the element size E({self.element_bits}) is negative")
        seen: set[int] = set()
        for split in self.splits:
            if split.dimension >= self.rank or split.dimension in seen:
                reason = "is split twice" if split.dimension in seen else "does not exist"
                raise invalid("invalid-split", f"dimension {split.dimension} {reason}")
            seen.add(split.dimension)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.minor_to_major)

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        """The dimensions from the slowest varying to the fastest."""
        return self.minor_to_major[::-1]

    def __str__(self) -> str:
        parts = [
            f"T{''.join(map(str, self.tiles))}" if self.tiles else "",
            f"L({self.tail_padding})" if self.tail_padding != 1 else "",
            f"E({self.element_bits})" if self.element_bits else "",
            str(self.memory_space) if self.memory_space != HBM else "",
            f"SC{''.join(map(str, self.splits))}" if self.splits else "",
        ]
        rest = "".join(parts)
        return f"{{{','.join(map(str, self.minor_to_major))}{':' if rest else ''}{rest}}}"


def default_layout(rank: int) -> Layout:
    """Return the layout of an array where nothing else is said: the last dimension varies fastest."""
    return Layout(tuple(range(rank)[::-1]))


def row_of(sizes: Iterable[object]) -> str:
    """Return values joined by commas, as XLA writes lists."""
    return ",".join(map(str, sizes))
