"""The view of tensor shardings by factor instead of by dimension.

Projecting a dimension sharding hands its axes, major first, to the dimension's factors, splitting an axis where a
factor takes only part of it. Going back concatenates the factors' axes and merges the parts again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from shardy_py.sharding.axes import AxisRef, SubAxis, add_axis_or_merge, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import TensorMapping
from shardy_py.sharding.tensor import DimensionSharding, ReductionOp, TensorSharding
from shardy_py.values import define

Axes = tuple[AxisRef, ...]


@define(slots=True)
class FactorSharding:
    """The sharding of one tensor along one factor.

    Attributes:
        axes: The axes, major first.
        is_closed: Whether the factor may not be sharded further.
        is_minor_most: Whether the factor is the last of its dimension.
        overflow_axes: Axes of the dimension that do not divide the factor; they are kept, and block it.
    """

    axes: Axes = ()
    is_closed: bool = False
    is_minor_most: bool = False
    overflow_axes: Axes = ()


@define(slots=True)
class TensorFactorShardings:
    """The factor shardings of a tensor, with the parts of its sharding that belong to no dimension."""

    factors: dict[int, FactorSharding]
    replicated_axes: Axes = ()
    unreduced_axes: Axes = ()
    reduction_op: ReductionOp = "sum"

    def copy(self) -> TensorFactorShardings:
        """Return a copy whose factor shardings can be replaced; they themselves are shared."""
        return TensorFactorShardings(self.factors.copy(), self.replicated_axes, self.unreduced_axes, self.reduction_op)


class _AxisCursor:
    """Splits the axes of a dimension between its factors."""

    __slots__ = ("axes", "index", "mesh", "pre_size", "size")

    def __init__(self, axes: Sequence[AxisRef], mesh: Mesh) -> None:
        self.axes = axes
        self.mesh = mesh
        self.index = -1
        self._advance()

    def _advance(self) -> None:
        self.index += 1
        if self.index < len(self.axes):
            axis = self.axes[self.index]
            self.size = axis.size(self.mesh)
            self.pre_size = axis.sub_axis.pre_size if axis.sub_axis else 0

    @property
    def done(self) -> bool:
        return self.index >= len(self.axes)

    def _current(self) -> AxisRef:
        name = self.axes[self.index].name
        return AxisRef(name, SubAxis(self.pre_size, self.size)) if self.pre_size else AxisRef(name)

    def take(self) -> AxisRef:
        """Return all that is left of the current axis and go on to the next."""
        axis = self._current()
        self._advance()
        return axis

    def take_part(self, size: int) -> AxisRef:
        """Return the major part, of ``size``, of the current axis."""
        part = SubAxis(self.pre_size or 1, size)
        self.pre_size = part.next_pre_size
        self.size //= size
        return AxisRef(self.axes[self.index].name, part)

    def take_all(self) -> Axes:
        """Return everything left, merging parts that belong together."""
        rest: list[AxisRef] = []
        while not self.done:
            add_axis_or_merge(rest, self.take(), self.mesh)
        return tuple(rest)


def _take_factor(cursor: _AxisCursor, factor_size: int) -> tuple[Axes, int]:
    """Return the axes of a factor that is not the minor-most one, and its remaining size."""
    taken: list[AxisRef] = []
    common = 1
    while not cursor.done:
        if cursor.size != 1:
            common = gcd(factor_size, cursor.size)
            if common == 1:
                break
        if cursor.size > common:
            factor_size //= common
            taken.append(cursor.take_part(common))
        else:
            factor_size //= cursor.size
            taken.append(cursor.take())
    return tuple(taken), factor_size


def project(
    sharding: TensorSharding | None,
    mapping: TensorMapping,
    factor_sizes: Sequence[int],
    mesh: Mesh,
    *,
    closed_if_missing: bool = False,
) -> TensorFactorShardings:
    """Return a tensor's factor shardings.

    Mirrors sharding_projection.cc::buildTensorFactorShardings.

    Args:
        sharding: The sharding, or None for an empty one.
        mapping: The factors of every dimension.
        factor_sizes: The size of every factor of the rule.
        mesh: The mesh of the sharding.
        closed_if_missing: Whether a missing sharding counts as closed rather than open.
    """
    factors: dict[int, FactorSharding] = {}
    if sharding is None:
        for dim_mapping in mapping:
            for factor in dim_mapping:
                factors[factor] = FactorSharding((), closed_if_missing, factor == dim_mapping[-1])
        return TensorFactorShardings(factors)
    for dim_mapping, dim in zip(mapping, sharding.dim_shardings, strict=True):
        _project_dim(dim, dim_mapping, factor_sizes, mesh, factors)
    return TensorFactorShardings(factors, sharding.replicated_axes, sharding.unreduced_axes, sharding.reduction_op)


def _project_dim(
    dim: DimensionSharding,
    dim_mapping: Sequence[int],
    factor_sizes: Sequence[int],
    mesh: Mesh,
    factors: dict[int, FactorSharding],
) -> None:
    if len(dim_mapping) == 1 and dim_mapping[0] not in factors and not _has_parts(dim.axes):
        # The only factor of a dimension takes everything: by far the most frequent case.
        factors[dim_mapping[0]] = FactorSharding(dim.axes, dim.is_closed, True)
        return
    cursor = _AxisCursor(dim.axes, mesh)
    overflowed = False
    for factor in dim_mapping:
        entry = factors.setdefault(factor, FactorSharding())
        entry.is_minor_most = factor == dim_mapping[-1]
        if overflowed:
            # Nothing minor to overflow axes may be sharded; the factors after this one do not exist here.
            entry.is_closed = True
            return
        entry.is_closed = dim.is_closed
        if entry.is_minor_most:
            entry.axes += cursor.take_all()
            return
        taken, remaining = _take_factor(cursor, factor_sizes[factor])
        entry.axes += taken
        if remaining > 1 and not cursor.done:
            overflowed = True
            entry.overflow_axes += cursor.take_all()


def _has_parts(axes: Axes) -> bool:
    """Return whether two axes may be parts of one, and may belong together."""
    return len(axes) > 1 and any(axis.sub_axis is not None for axis in axes)


def unproject(
    tensor: TensorFactorShardings,
    mapping: TensorMapping,
    factor_sizes: Sequence[int],
    mesh_name: str | Mesh,
    mesh: Mesh,
) -> TensorSharding:
    """Return the tensor sharding of factor shardings; axes that would need a strided view are dropped.

    Mirrors sharding_projection.cc::createTensorShardingAttr.
    """
    dims = tuple(_unproject_dim(tensor.factors, dim_mapping, factor_sizes, mesh) for dim_mapping in mapping)
    return TensorSharding(mesh_name, dims, tensor.replicated_axes, tensor.unreduced_axes, tensor.reduction_op)


def _unproject_dim(
    factors: dict[int, FactorSharding], dim_mapping: Sequence[int], factor_sizes: Sequence[int], mesh: Mesh
) -> DimensionSharding:
    if len(dim_mapping) == 1:
        entry = factors[dim_mapping[0]]
        if not entry.overflow_axes:
            return DimensionSharding(entry.axes, entry.is_closed)
    axes: list[AxisRef] = []
    is_closed = False
    for factor in dim_mapping:
        entry = factors[factor]
        is_closed = is_closed or entry.is_closed
        _append(axes, entry.axes, mesh)
        if entry.overflow_axes:
            _append(axes, entry.overflow_axes, mesh)
            break
        if axes_size(entry.axes, mesh) < factor_sizes[factor]:
            break
    return DimensionSharding(tuple(axes), is_closed)


def _append(axes: list[AxisRef], more: Axes, mesh: Mesh) -> None:
    """Append axes; the first one is merged with the last axis present where that is possible."""
    if more:
        add_axis_or_merge(axes, more[0], mesh)
        axes.extend(more[1:])


def distribute_axes(axes: Sequence[AxisRef], factor_sizes: Sequence[int], mesh: Mesh) -> tuple[list[Axes], Axes]:
    """Distribute axes, major first, to the first factors with room for them or for a part.

    Mirrors sharding_projection.cc::distributeAxesAcrossFactors.

    Args:
        axes: The axes.
        factor_sizes: The sizes of the factors, in the order in which they are offered the axes.
        mesh: The mesh.

    Returns:
        The axes of every factor, and those that are left once no factor can take the next one.
    """
    taken: list[list[AxisRef]] = [[] for _ in factor_sizes]
    left = list(factor_sizes)
    cursor = _AxisCursor(axes, mesh)
    while not cursor.done:
        if not _offer(cursor, taken, left, mesh):
            break
    return [tuple(part) for part in taken], cursor.take_all()


def _offer(cursor: _AxisCursor, taken: list[list[AxisRef]], left: list[int], mesh: Mesh) -> bool:
    """Offer the current axis to every factor in turn until all of it is taken; return whether any took a part."""
    used = False
    for index, size in enumerate(left):
        common = gcd(size, cursor.size)
        if size <= 1 or (common == 1 and cursor.size != 1):
            continue
        used = True
        left[index] //= common
        if cursor.size == common:
            add_axis_or_merge(taken[index], cursor.take(), mesh)
            break
        add_axis_or_merge(taken[index], cursor.take_part(common), mesh)
    return used
