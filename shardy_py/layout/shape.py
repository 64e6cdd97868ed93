"""Shapes: arrays with their layout, tuples, tokens and opaque values. ``str(x)`` is XLA's text."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from attrs import Factory, evolve, field

from shardy_py.layout.values import (
    Layout,
    Split,
    as_tuple,
    default_layout,
    instance,
    integer,
    invalid,
    row_of,
    tuple_of,
)
from shardy_py.support.arguments import shown
from shardy_py.support.element_types import ELEMENT_TYPES, storage_bits
from shardy_py.values import frozen

_LETTERS = {2: "yx", 3: "zyx", 4: "pzyx"}
_COMMENT_EVERY = 5
_MAX_BYTES = 2**63 - 1


def _default(sizes: Any) -> Layout:
    return default_layout(len(sizes) if isinstance(sizes, tuple) else 0)


@frozen(cache_hash=True)
class Bounded:
    """A dynamic size that has a bound; memory is laid out for the bound."""

    bound: int = field(validator=integer)

    def __attrs_post_init__(self) -> None:
        if self.bound < 0:
            raise invalid("invalid-size", f"the bound {self.bound} is negative")

    def __str__(self) -> str:
        return f"<={self.bound}"


Size = int | Bounded | None
"""The size of a dimension: a number, a bounded dynamic size, or None for an unbounded one."""


@frozen(cache_hash=True)
class Shape:
    """An array: element type, sizes, layout.

    Args:
        element_type: XLA's name, for example ``bf16``.
        sizes: One size per dimension; zero is legal.
        layout: Where the elements lie; by default the last dimension varies fastest.

    >>> str(Shape("f32", (2, Bounded(4), None)))
    'f32[2,<=4,?]{2,1,0}'
    """

    element_type: str = field(validator=instance(str))
    sizes: tuple[Size, ...] = field(converter=as_tuple, validator=tuple_of(int, Bounded, type(None)))
    layout: Layout = field(default=Factory(lambda self: _default(self.sizes), takes_self=True))

    def __attrs_post_init__(self) -> None:
        if self.element_type not in ELEMENT_TYPES:
            raise invalid("unknown-element-type", f"there is no element type {self.element_type!r}")
        for size in self.sizes:
            if isinstance(size, int) and size < 0:
                raise invalid("invalid-size", f"the size {size} is negative")
        if not isinstance(self.layout, Layout):
            raise invalid("invalid-argument", f"Shape: layout is {shown(self.layout)}, not a Layout")
        if self.layout.rank != self.rank:
            numbers = f"{self.layout.rank} dimension{'s' * (self.layout.rank != 1)}"
            raise invalid("rank-mismatch", f"the layout {self.layout} has {numbers}, the shape {self.rank}")
        known = [size for size in self.bounds if size is not None]
        if prod(known) * storage_bits(self.element_type) // 8 > _MAX_BYTES:
            raise invalid("size-overflow", "the bytes of the array do not fit 64 bits")
        for split in self.layout.splits:
            self._check_split(split)

    def _check_split(self, split: Split) -> None:
        size = self.bounds[self.layout.major_to_minor[split.dimension]]
        if size is None:
            raise invalid("invalid-split", f"physical dimension {split.dimension} is split but unbounded")
        if split.indices[-1] >= size:
            place = f"physical dimension {split.dimension}, which has size {size}"
            raise invalid("invalid-split", f"the split index {split.indices[-1]} is not inside {place}")

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def bounds(self) -> tuple[int | None, ...]:
        """The sizes memory is laid out for; None where there is no bound."""
        return tuple(size.bound if isinstance(size, Bounded) else size for size in self.sizes)

    @property
    def true_rank(self) -> int:
        """The number of dimensions of a size greater than one; a dynamic one counts by its bound."""
        return sum(1 for size in self.bounds if size is None or size > 1)

    @property
    def is_static(self) -> bool:
        """True if every size is a number."""
        return all(isinstance(size, int) for size in self.sizes)

    @property
    def static_bounds(self) -> tuple[int, ...]:
        """The sizes memory is laid out for.

        Raises:
            VerificationError: a dimension is unbounded, so that no memory can be laid out.
        """
        bounds = self.bounds
        if None in bounds:
            message = f"dimension {bounds.index(None)} of {self} is unbounded: it has no size in memory"
            raise invalid("unbounded-size", message, hint="give it a bound, like <=4")
        return bounds  # type: ignore[return-value]

    @property
    def physical_sizes(self) -> tuple[int, ...]:
        """The sizes from the slowest varying dimension to the fastest, before tiling.

        Raises:
            VerificationError: a dimension is unbounded.
        """
        bounds = self.static_bounds
        return tuple(bounds[number] for number in self.layout.major_to_minor)

    @property
    def letters(self) -> tuple[str, ...]:
        """The customary letters of the dimensions: y,x / z,y,x / p,z,y,x; other ranks have numbers."""
        return tuple(_LETTERS.get(self.rank, map(str, range(self.rank))))

    def dimension(self, number: int) -> int:
        """Return a dimension number counted from the start; negative ones count from the end.

        Raises:
            VerificationError: there is no such dimension.
        """
        if not -self.rank <= number < self.rank:
            raise invalid("unknown-dimension", f"{self} has no dimension {number}")
        return number % self.rank

    def with_layout(self, layout: Layout) -> Shape:
        """Return the shape with another layout."""
        return evolve(self, layout=layout)

    def __str__(self) -> str:
        layout = str(self.layout)
        sizes = row_of("?" if size is None else size for size in self.sizes)
        return f"{self.element_type}[{sizes}]{'' if layout == '{}' else layout}"


@frozen(cache_hash=True)
class TupleShape:
    """Several shapes as one value.

    >>> str(TupleShape((Shape("f32", (2,)), TupleShape(()))))
    '(f32[2]{0}, ())'
    """

    elements: tuple[AnyShape, ...]

    def __str__(self) -> str:
        # As XLA does, to help whoever counts the elements of a long tuple.
        texts = [
            f"/*index={index}*/{element}" if index and index % _COMMENT_EVERY == 0 else str(element)
            for index, element in enumerate(self.elements)
        ]
        return f"({', '.join(texts)})"


@frozen
class TokenShape:
    """The shape of a token: it orders side effects and takes no memory."""

    def __str__(self) -> str:
        return "token[]"


@frozen
class OpaqueShape:
    """The shape of a value only some device understands."""

    def __str__(self) -> str:
        return "opaque[]"


AnyShape = Shape | TupleShape | TokenShape | OpaqueShape


def arrays(shape: AnyShape) -> Iterator[Shape]:
    """Iterate over the arrays in a shape, from the left."""
    if isinstance(shape, Shape):
        yield shape
    elif isinstance(shape, TupleShape):
        for element in shape.elements:
            yield from arrays(element)


def map_arrays(shape: AnyShape, function: Any) -> AnyShape:
    """Return the shape with the function applied to every array."""
    if isinstance(shape, Shape):
        result: AnyShape = function(shape)
        return result
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map_arrays(element, function) for element in shape.elements))
    return shape
