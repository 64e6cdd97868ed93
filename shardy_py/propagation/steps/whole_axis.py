"""Aggressive factor propagation for steps along full axes: the fast form that fits most steps.

It applies if every dimension of the tensors has one factor and no tensor has a sub-axis. Then an axis is its name, the
axes of a factor are those of a dimension, and an axis fits anywhere it is not used. `propagate_aggressive` is the slow
and clear form: a property test compares the two. Lists of names are compared at once, and factors along which all
tensors agree already are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import prod
from operator import itemgetter

from shardy_py.propagation.steps.factors import Direction
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

Names = tuple[str, ...]
"""The names of whole axes, major first."""

_BACKWARD, _BOTH = int(Direction.BACKWARD), int(Direction.BOTH)


@define(frozen=True, eq=False)
class WholeAxisTensor:
    """A sharding without sub-axes.

    Attributes:
        dims: The axes of every dimension.
        closed: Whether each dimension may not be sharded further.
        elsewhere: The axes that belong to no dimension but are not available, either.
    """

    dims: tuple[Names, ...]
    closed: tuple[bool, ...]
    elsewhere: Names


@define(frozen=True, eq=False)
class WholeAxisRule:
    """The rule of a step along whole axes, by tensor and dimension.

    Attributes:
        num_operands: How many of the tensors are operands.
        tensors_of_factor: Factor to the tensors that have it, operands first, with the dimension.
        shared: The factors that several tensors have; what picks the axes along each of them out of those of all
            dimensions of all tensors, one after the other; how many of them are those of operands.
        dim_of: Tensor to its dimensions by factor.
        ranks: Tensor to its number of dimensions.
        sizes: Tensor to its number of elements.
    """

    num_operands: int
    tensors_of_factor: tuple[tuple[tuple[int, int], ...], ...]
    shared: tuple[tuple[int, Callable[[Sequence[Names]], tuple[Names, ...]], int], ...]
    dim_of: tuple[Mapping[int, int], ...]
    ranks: tuple[int, ...]
    sizes: tuple[int, ...]


def whole_axis_rule(rule: OpShardingRule) -> WholeAxisRule | None:
    """Return a rule in this form, or None where a dimension has several factors or a tensor one factor twice."""
    count, num_operands = len(rule.factor_sizes), len(rule.operand_mappings)
    tensors_of_factor: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    positions: list[list[int]] = [[] for _ in range(count)]
    in_operands = [0] * count
    dim_of, ranks, start = [], [], 0
    for tensor, mapping in enumerate(rule.mappings):
        dims = {factors[0]: dim for dim, factors in enumerate(mapping) if len(factors) == 1}
        if len(dims) != len(mapping):
            return None
        for factor, dim in dims.items():
            tensors_of_factor[factor].append((tensor, dim))
            positions[factor].append(start + dim)
            in_operands[factor] += tensor < num_operands
        dim_of.append(dims)
        ranks.append(len(dims))
        start += len(dims)
    shared = [
        (factor, itemgetter(*tensor_positions), in_operands[factor])
        for factor, tensor_positions in enumerate(positions)
        if len(tensor_positions) > 1
    ]
    sizes = [prod([rule.factor_sizes[factor] for factor in dims]) for dims in dim_of]
    return WholeAxisRule(
        num_operands, tuple(map(tuple, tensors_of_factor)), tuple(shared), tuple(dim_of), tuple(ranks), tuple(sizes)
    )


def whole_axis_tensor(sharding: TensorSharding) -> WholeAxisTensor | None:
    """Return a sharding in this form, or None where it has a sub-axis."""
    outside = (*sharding.replicated_axes, *sharding.unreduced_axes)
    if any(axis.sub_axis for axis in chain(outside, *[dim.axes for dim in sharding.dim_shardings])):
        return None
    return WholeAxisTensor(
        tuple([_names(dim.axes) for dim in sharding.dim_shardings]),
        tuple([dim.is_closed for dim in sharding.dim_shardings]),
        _names(outside),
    )


def open_tensor(rank: int) -> WholeAxisTensor:
    """Return a missing sharding in this form."""
    return WholeAxisTensor(((),) * rank, (False,) * rank, ())


def _names(axes: Sequence[AxisRef]) -> Names:
    return tuple([axis.name for axis in axes]) if axes else ()


def propagate_whole_axes(
    rule: WholeAxisRule,
    tensors: Sequence[WholeAxisTensor],
    directions: Sequence[int],
    mesh: Mesh,
    *,
    is_elementwise: bool,
) -> dict[int, list[Names]]:
    """Return the new axes of all dimensions of every tensor that changes, results first.

    Mirrors aggressive_factor_propagation.cc::propagateFactorShardings.

    Args:
        rule: The rule.
        tensors: Operands, then results.
        directions: The direction of every factor.
        mesh: The common mesh.
        is_elementwise: Whether the op counts as elementwise.
    """
    axes_of_all: list[Names] = []
    for tensor in tensors:
        axes_of_all += tensor.dims
    wanted = {}
    for factor, pick, in_operands in rule.shared:
        if directions[factor]:
            lists = pick(axes_of_all)
            if lists.count(lists[0]) != len(lists):
                axes = _merged(lists, in_operands, directions[factor])
                if axes:
                    wanted[factor] = axes
    if not wanted:
        return {}
    order: Sequence[int] = tuple(wanted)
    if len(order) > 1:
        order = _by_preference(rule, tensors, wanted, mesh, is_elementwise)
    ordered = [(factor, wanted[factor]) for factor in order]
    changes: dict[int, list[Names]] = {}
    count = rule.num_operands
    for index in range(count, len(tensors)):
        _give(rule, tensors, changes, index, ordered, ())
    results = range(count, len(tensors)) if is_elementwise else ()
    for index in range(count):
        _give(rule, tensors, changes, index, ordered, results)
    return changes


def _merged(lists: tuple[Names, ...], in_operands: int, direction: int) -> Names:
    """Return the axes along a factor on which the tensors agree (see `compatible_major_axes`).

    Args:
        lists: The axes of every tensor that has the factor, operands first.
        in_operands: How many of these are operands.
        direction: The direction of the factor.

    Returns:
        The axes; none where no tensor has less than them, which does not change either.
    """
    num_sources = len(lists)
    if direction != _BOTH:
        num_sources = in_operands
        if direction == _BACKWARD:
            lists = lists[in_operands:] + lists[:in_operands]
            num_sources = len(lists) - in_operands
    axes: Names = ()
    can_grow = True
    for index, other in enumerate(lists):
        common = min(len(axes), len(other))
        if axes[:common] != other[:common]:
            axes, can_grow = _common_prefix(axes, other), False
        elif len(other) > common and can_grow and index < num_sources:
            axes = other
    for tensor_axes in lists:
        if len(tensor_axes) < len(axes) and axes[: len(tensor_axes)] == tensor_axes:
            return axes
    return ()


def _common_prefix(first: Names, second: Names) -> Names:
    for index, (axis, other) in enumerate(zip(first, second, strict=False)):
        if axis != other:
            return first[:index]
    raise AssertionError("only asked about lists that differ")


def _by_preference(
    rule: WholeAxisRule,
    tensors: Sequence[WholeAxisTensor],
    wanted: Mapping[int, Names],
    mesh: Mesh,
    is_elementwise: bool,
) -> list[int]:
    """Return the factors by preference (see `shardy_py.propagation.steps.aggressive`)."""

    def key(factor: int) -> tuple[int, int, int, int]:
        axes = wanted[factor]
        size, source = -1, -1
        for tensor, dim in rule.tensors_of_factor[factor]:
            if rule.sizes[tensor] > size and tensors[tensor].dims[dim][: len(axes)] == axes:
                size, source = rule.sizes[tensor], tensor
        sharded = prod([mesh.axis_size(name) for name in axes]) if is_elementwise else 0
        return (-size, -sharded, source, factor)

    return sorted(wanted, key=key)


def _give(
    rule: WholeAxisRule,
    tensors: Sequence[WholeAxisTensor],
    changes: dict[int, list[Names]],
    tensor: int,
    wanted: Iterable[tuple[int, Names]],
    limits: Iterable[int],
) -> None:
    """Expand a tensor by the axes that it can take along factors.

    Args:
        rule: The rule.
        tensors: The tensors before.
        changes: The new axes of tensors; added to.
        tensor: The tensor.
        wanted: The factors with the axes, those preferred first.
        limits: The tensors that must not have less along a factor (see `shardy_py.propagation.steps.aggressive`).
    """
    old, dim_of = tensors[tensor], rule.dim_of[tensor]
    dims: Sequence[Names] = old.dims
    for factor, axes in wanted:
        dim = dim_of.get(factor)
        if dim is None or old.closed[dim]:
            continue
        dim_axes = dims[dim]
        count = len(dim_axes)
        if count >= len(axes) or axes[:count] != dim_axes:
            continue
        axes = _available(axes, count, old.elsewhere, dims)
        for other in limits:
            factor_dim = rule.dim_of[other].get(factor)
            if factor_dim is not None:
                limit = changes.get(other, tensors[other].dims)[factor_dim]
                if axes[: len(limit)] == limit:
                    axes = limit
        if len(axes) > count and axes[:count] == dim_axes:
            if dims is old.dims:
                dims = changes[tensor] = list(dims)
            dims[dim] = axes  # type: ignore[index]


def _available(axes: Names, count: int, elsewhere: Names, dims: Iterable[Names]) -> Names:
    """Return axes up to the first, behind so many of them, that a tensor has somewhere already."""
    for name in axes[count:]:
        if name in elsewhere or name in chain.from_iterable(dims):
            break
        count += 1
    return axes[:count]
