"""Dimension shardings and tensor shardings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from attrs import evolve, frozen

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh

ReductionOp = Literal["sum", "max", "min"]


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

    def __str__(self) -> str:
        parts = [str(axis) for axis in self.axes] + ([] if self.is_closed else ["?"])
        suffix = "" if self.priority is None else f"p{self.priority}"
        return "{" + ", ".join(parts) + "}" + suffix


OPEN = DimensionSharding(is_closed=False)
CLOSED = DimensionSharding()


@frozen(cache_hash=True)
class TensorSharding:
    """How a tensor is sharded over a mesh, one dimension sharding per dimension.

    Args:
        mesh: The symbol name of a mesh, or the mesh itself (an inlined mesh).
        dim_shardings: One per dimension.
        replicated_axes: Axes along which the tensor must stay replicated, in mesh order.
        unreduced_axes: Axes along which the tensor holds partial results, in mesh order.
        reduction_op: How partial results combine; only meaningful with unreduced axes.
    """

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
        """Whether no axis is mentioned anywhere."""
        return next(self.axes(), None) is None

    @property
    def is_fully_replicated(self) -> bool:
        """Whether no dimension is sharded and nothing is unreduced."""
        return not self.unreduced_axes and not any(dim.axes for dim in self.dim_shardings)

    @property
    def is_fully_open(self) -> bool:
        """Whether no axis is mentioned and every dimension is open."""
        return self.empty_axes and not any(dim.is_closed for dim in self.dim_shardings)

    def is_equivalent(self, other: TensorSharding | None) -> bool:
        """Return whether both place the same data on every device (open and closed aside)."""
        if self.is_fully_replicated:
            return other is None or other.is_fully_replicated
        if other is None:
            return False
        return (
            self.mesh == other.mesh
            and self.unreduced_axes == other.unreduced_axes
            and (not self.unreduced_axes or self.reduction_op == other.reduction_op)
            and [dim.axes for dim in self.dim_shardings] == [dim.axes for dim in other.dim_shardings]
        )

    def map_dims(self, function: Callable[[DimensionSharding], DimensionSharding]) -> TensorSharding:
        """Return this sharding with ``function`` applied to every dimension."""
        return evolve(self, dim_shardings=tuple(function(dim) for dim in self.dim_shardings))

    def __str__(self) -> str:
        # MLIR quotes a symbol that is not a bare identifier.
        mesh = f"mesh{self.mesh}" if isinstance(self.mesh, Mesh) else symbol(self.mesh)
        dims = ", ".join(str(dim) for dim in self.dim_shardings)
        unreduced = "" if self.reduction_op == "sum" else self.reduction_op
        return (
            f"<{mesh}, [{dims}]"
            + _named("replicated=", self.replicated_axes)
            + _named(f"unreduced={unreduced}", self.unreduced_axes)
            + ">"
        )


@frozen(cache_hash=True)
class TensorShardingPerValue:
    """The shardings of several values, printed ``<[<@mesh, [...]>, ...]>``."""

    shardings: tuple[TensorSharding, ...]

    def __str__(self) -> str:
        return "<[" + ", ".join(str(sharding) for sharding in self.shardings) + "]>"


@frozen(cache_hash=True)
class ManualAxes:
    """The axes a manual computation is manual on, printed ``{"x", "y"}``."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(str(AxisRef(name)) for name in self.names) + "}"


def symbol(name: str) -> str:
    """Return a symbol reference as MLIR prints it: ``@mesh``, quoted where it has to be."""
    bare = name and not name[0].isdigit() and all(c.isascii() and (c.isalnum() or c in "_$.") for c in name)
    return f"@{name}" if bare else "@" + str(AxisRef(name))


def _named(keyword: str, axes: Iterable[AxisRef]) -> str:
    body = ", ".join(str(axis) for axis in axes)
    return f", {keyword}{{{body}}}" if body else ""
