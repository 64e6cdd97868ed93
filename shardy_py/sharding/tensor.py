"""Dimension shardings and tensor shardings."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import ClassVar, Literal

from attrs import evolve

from shardy_py.sharding.axes import AxisRef, SdyAttribute, axes_size, quote
from shardy_py.sharding.mesh import Mesh
from shardy_py.support.identity import identity
from shardy_py.values import frozen

ReductionOp = Literal["sum", "max", "min"]

_BARE_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*").fullmatch


@frozen(cache_hash=True)
class DimensionSharding:
    """The axes of one dimension, major first; closed unless it may be sharded further.

    >>> str(DimensionSharding((AxisRef("x"),), is_closed=False, priority=1))
    '{"x", ?}p1'
    """

    axes: tuple[AxisRef, ...] = ()
    is_closed: bool = True
    priority: int | None = None

    @property
    def priority_or_default(self) -> int:
        """The user priority; 0, the highest, where none is given."""
        return 0 if self.priority is None else self.priority

    def sharded_size(self, mesh: Mesh) -> int:
        """Return the number of parts the dimension is split into."""
        return axes_size(self.axes, mesh)

    def __str__(self) -> str:
        parts = [str(axis) for axis in self.axes]
        if not self.is_closed:
            parts.append("?")
        suffix = "" if self.priority is None else f"p{self.priority}"
        return "{" + ", ".join(parts) + "}" + suffix


_AXES = attrgetter("axes")
OPEN = DimensionSharding(is_closed=False)
CLOSED = DimensionSharding()


@frozen(cache_hash=True)
class TensorSharding(SdyAttribute):
    """The sharding of a tensor over a mesh, one dimension sharding per dimension.

    Args:
        mesh: The symbol name of a mesh, or the mesh itself (an inlined mesh).
        dim_shardings: One per dimension.
        replicated_axes: Axes along which the tensor must stay replicated, in mesh order.
        unreduced_axes: Axes along which the tensor holds partial results, in mesh order.
        reduction_op: How partial results combine; only meaningful with unreduced axes.
    """

    mnemonic: ClassVar[str] = "sharding"

    mesh: str | Mesh
    dim_shardings: tuple[DimensionSharding, ...] = ()
    replicated_axes: tuple[AxisRef, ...] = ()
    unreduced_axes: tuple[AxisRef, ...] = ()
    reduction_op: ReductionOp = "sum"

    @classmethod
    def fully_open(cls, mesh: str | Mesh, rank: int) -> TensorSharding:
        """Return an empty sharding in which every dimension may be sharded further."""
        return cls(mesh, (OPEN,) * rank)

    @classmethod
    def fully_closed(cls, mesh: str | Mesh, rank: int) -> TensorSharding:
        """Return an empty sharding in which no dimension may be sharded."""
        return cls(mesh, (CLOSED,) * rank)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dim_shardings)

    def axes(self) -> Iterator[AxisRef]:
        """Iterate over all axes: of the dimensions, replicated, then unreduced."""
        for dim in self.dim_shardings:
            yield from dim.axes
        yield from self.replicated_axes
        yield from self.unreduced_axes

    @property
    def empty_axes(self) -> bool:
        """True if no axis is mentioned anywhere."""
        return next(self.axes(), None) is None

    @property
    def is_fully_replicated(self) -> bool:
        """True if no dimension is sharded; unreduced axes do not matter."""
        return not any(map(_AXES, self.dim_shardings))

    @property
    def is_fully_closed(self) -> bool:
        """True if every dimension is closed."""
        return all(dim.is_closed for dim in self.dim_shardings)

    def of_dimension(self, dimension: int) -> DimensionSharding:
        """Return the sharding of a dimension; a maximal sharding has none, whose dimensions are closed."""
        return self.dim_shardings[dimension] if self.dim_shardings else CLOSED

    @property
    def is_fully_open(self) -> bool:
        """True if no axis is mentioned and every dimension is open."""
        return self.empty_axes and not any(dim.is_closed for dim in self.dim_shardings)

    def is_equivalent(self, other: TensorSharding | None, *, ignore_unreduced_axes: bool = False) -> bool:
        """Return whether both place the same data on every device (open and closed aside).

        Args:
            other: The sharding to compare with; None is the absence of a sharding, which is fully replicated.
            ignore_unreduced_axes: Whether to compare only the dimensions.
        """
        unreduced = () if ignore_unreduced_axes else self.unreduced_axes
        other_unreduced = () if ignore_unreduced_axes or other is None else other.unreduced_axes
        if self.is_fully_replicated and not unreduced:
            return other is None or (other.is_fully_replicated and not other_unreduced)
        if other is None:
            return False
        return (
            self.mesh == other.mesh
            and unreduced == other_unreduced
            and (not unreduced or self.reduction_op == other.reduction_op)
            and [dim.axes for dim in self.dim_shardings] == [dim.axes for dim in other.dim_shardings]
        )

    def closed_like(self) -> TensorSharding:
        """Return this sharding with every dimension closed and no replicated axes."""
        dims = tuple(map(closed_dimension, self.dim_shardings))
        return TensorSharding(self.mesh, dims, (), self.unreduced_axes, self.reduction_op)

    def open_like(self) -> TensorSharding:
        """Return this sharding with every dimension open."""
        return self.map_dims(lambda dim: evolve(dim, is_closed=False))

    def local_shape(self, shape: Sequence[int | None], mesh: Mesh) -> tuple[int | None, ...]:
        """Return the shape of the part one device holds, rounded up where a dimension does not divide.

        >>> TensorSharding("mesh", (DimensionSharding((AxisRef("x"),)), CLOSED)).local_shape((6, 8), Mesh.of(x=4))
        (2, 8)
        """
        sizes = zip(shape, self.dim_shardings, strict=True)
        return tuple(None if size is None else -(-size // dim.sharded_size(mesh)) for size, dim in sizes)

    def with_whole_dims(self, dims: Container[int]) -> TensorSharding:
        """Return this sharding with some dimensions replicated and closed."""
        numbered = enumerate(self.dim_shardings)
        return evolve(self, dim_shardings=tuple([CLOSED if number in dims else dim for number, dim in numbered]))

    def map_dims(self, function: Callable[[DimensionSharding], DimensionSharding]) -> TensorSharding:
        """Return this sharding with ``function`` applied to every dimension; itself if that changes none."""
        dims = tuple(map(function, self.dim_shardings))
        if dims == self.dim_shardings:
            return self
        return TensorSharding(self.mesh, dims, self.replicated_axes, self.unreduced_axes, self.reduction_op)

    def __str__(self) -> str:
        # MLIR quotes a symbol that is not a bare identifier.
        mesh = f"mesh{self.mesh}" if isinstance(self.mesh, Mesh) else symbol(self.mesh)
        dims = ", ".join([str(dim) for dim in self.dim_shardings])
        replicated = unreduced = ""
        if self.replicated_axes:
            replicated = _named("replicated=", self.replicated_axes)
        if self.unreduced_axes:
            operation = "" if self.reduction_op == "sum" else self.reduction_op
            unreduced = _named(f"unreduced={operation}", self.unreduced_axes)
        return f"<{mesh}, [{dims}]{replicated}{unreduced}>"


@frozen(cache_hash=True)
class TensorShardingPerValue(SdyAttribute):
    """The shardings of several values, printed ``<[<@mesh, [...]>, ...]>``."""

    mnemonic: ClassVar[str] = "sharding_per_value"

    shardings: tuple[TensorSharding, ...]

    def __str__(self) -> str:
        # A loop has many values, and few different shardings.
        distinct = {identity(sharding): sharding for sharding in self.shardings}
        texts = {key: str(sharding) for key, sharding in distinct.items()}
        return f"<[{', '.join([texts[identity(sharding)] for sharding in self.shardings])}]>"


@frozen(cache_hash=True)
class ManualAxes(SdyAttribute):
    """The axes a manual computation is manual on, printed ``{"x", "y"}``."""

    mnemonic: ClassVar[str] = "manual_axes"
    is_array: ClassVar[bool] = True

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(quote(name) for name in self.names) + "}"


def symbol(name: str) -> str:
    """Return a symbol reference as MLIR prints it: ``@mesh``, quoted where it has to be."""
    return f"@{name}" if _BARE_SYMBOL(name) else f"@{quote(name)}"


def closed_dimension(dim: DimensionSharding) -> DimensionSharding:
    """Return the sharding of a dimension closed."""
    return dim if dim.is_closed else DimensionSharding(dim.axes, True, dim.priority)


def _named(keyword: str, axes: Iterable[AxisRef]) -> str:
    return f", {keyword}{{{', '.join(str(axis) for axis in axes)}}}"
