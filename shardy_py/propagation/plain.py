"""Aggressive factor propagation for plain steps, which most steps are.

A step is plain if every dimension of its tensors has one factor and no tensor has a part of an axis. Then an axis is
its name, the axes of a factor are those of a dimension, and an axis fits anywhere it is not used. The result is that of
`propagate_aggressive`, which is a law under test, at a fraction of the cost: lists of names are compared at once, and
factors along which all tensors agree already are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import prod

from attrs import define

from shardy_py.propagation.factors import Direction
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding

Names = tuple[str, ...]
"""The names of whole axes, major first."""

_BACKWARD, _BOTH = int(Direction.BACKWARD), int(Direction.BOTH)


@define(frozen=True, eq=False)
class PlainTensor:
    """A sharding without parts of axes.

    Attributes:
        dims: The axes of every dimension.
        closed: Whether each dimension may not be sharded further.
        elsewhere: The axes that belong to no dimension but are not available, either.
    """

    dims: tuple[Names, ...]
    closed: tuple[bool, ...]
    elsewhere: Names


@define(frozen=True, eq=False)
class Frame:
    """What a plain step has to know of its rule.

    Attributes:
        num_operands: How many of the tensors are operands.
        places: Factor to the tensors that have it, operands first, with the dimension.
        dim_of: Tensor to its dimensions by factor.
        ranks: Tensor to its number of dimensions.
        sizes: Tensor to its number of elements.
        is_pointwise: Whether all tensors have the same factors in the same order.
    """

    num_operands: int
    places: tuple[tuple[tuple[int, int], ...], ...]
    dim_of: tuple[Mapping[int, int], ...]
    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    is_pointwise: bool


def plain_frame(rule: OpShardingRule) -> Frame | None:
    """Return the frame of a rule, or None where a dimension has several factors or a tensor one factor twice."""
    places: list[list[tuple[int, int]]] = [[] for _ in rule.factor_sizes]
    dim_of = []
    for tensor, mapping in enumerate(rule.mappings):
        dims = {factors[0]: dim for dim, factors in enumerate(mapping) if len(factors) == 1}
        if len(dims) != len(mapping):
            return None
        for factor, dim in dims.items():
            places[factor].append((tensor, dim))
        dim_of.append(dims)
    sizes = tuple([prod([rule.factor_sizes[factor] for factor in dims]) for dims in dim_of])
    ranks = tuple(map(len, dim_of))
    is_pointwise = len(set(rule.mappings)) == 1
    return Frame(len(rule.operand_mappings), tuple(map(tuple, places)), tuple(dim_of), ranks, sizes, is_pointwise)


def plain_tensor(sharding: TensorSharding) -> PlainTensor | None:
    """Return a sharding as a plain tensor, or None where it has a part of an axis."""
    outside = (*sharding.replicated_axes, *sharding.unreduced_axes)
    if any(axis.sub_axis for axis in chain(outside, *[dim.axes for dim in sharding.dim_shardings])):
        return None
    return PlainTensor(
        tuple([_names(dim.axes) for dim in sharding.dim_shardings]),
        tuple([dim.is_closed for dim in sharding.dim_shardings]),
        _names(outside),
    )


def open_tensor(rank: int) -> PlainTensor:
    """Return the plain tensor of a missing sharding."""
    return PlainTensor(((),) * rank, (False,) * rank, ())


def _names(axes: Sequence[AxisRef]) -> Names:
    return tuple([axis.name for axis in axes]) if axes else ()


def propagate_plain(
    frame: Frame, tensors: Sequence[PlainTensor], directions: Sequence[int], mesh: Mesh, *, is_elementwise: bool
) -> dict[int, list[Names]]:
    """Return the new axes of all dimensions of every tensor that changes, results first.

    Args:
        frame: The frame of the rule.
        tensors: Operands, then results.
        directions: The direction of every factor.
        mesh: The common mesh.
        is_elementwise: Whether the op counts as elementwise.
    """
    if frame.is_pointwise and all(tensor.dims == tensors[0].dims for tensor in tensors):
        return {}
    wanted = {}
    for factor, direction in enumerate(directions):
        if direction:
            axes = _merged(frame, tensors, frame.places[factor], direction)
            if axes:
                wanted[factor] = axes
    if not wanted:
        return {}
    order: Sequence[int] = tuple(wanted)
    if len(order) > 1:
        order = _by_preference(frame, tensors, wanted, mesh, is_elementwise)
    changes: dict[int, list[Names]] = {}
    count = frame.num_operands
    for tensor in range(count, len(tensors)):
        for factor in order:
            _give(frame, tensors, changes, tensor, factor, wanted[factor], ())
    results = range(count, len(tensors)) if is_elementwise else ()
    for tensor in range(count):
        for factor in order:
            _give(frame, tensors, changes, tensor, factor, wanted[factor], results)
    return changes


def _merged(frame: Frame, tensors: Sequence[PlainTensor], places: Sequence[tuple[int, int]], direction: int) -> Names:
    """Return the axes along a factor on which the tensors agree (see `compatible_major_axes`).

    Returns:
        The axes; none where no tensor has less than them, which does not change either.
    """
    lists = [tensors[tensor].dims[dim] for tensor, dim in places]
    if not lists or lists.count(lists[0]) == len(lists):
        return ()
    num_sources = len(lists)
    if direction != _BOTH:
        num_operands = len([tensor for tensor, _ in places if tensor < frame.num_operands])
        num_sources = num_operands
        if direction == _BACKWARD:
            lists = lists[num_operands:] + lists[:num_operands]
            num_sources = len(lists) - num_operands
    axes: Names = ()
    can_grow = True
    for index, other in enumerate(lists):
        common = min(len(axes), len(other))
        if axes[:common] != other[:common]:
            axes, can_grow = _common_prefix(axes, other), False
        elif len(other) > common and can_grow and index < num_sources:
            axes = other
    return axes if any(len(own) < len(axes) and axes[: len(own)] == own for own in lists) else ()


def _common_prefix(first: Names, second: Names) -> Names:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return first[:index]
    raise AssertionError("only asked about lists that differ")


def _by_preference(
    frame: Frame, tensors: Sequence[PlainTensor], wanted: Mapping[int, Names], mesh: Mesh, is_elementwise: bool
) -> list[int]:
    """Return the factors by preference (see `shardy_py.propagation.aggressive.preference`)."""

    def key(factor: int) -> tuple[int, int, int, int]:
        axes = wanted[factor]
        size, source = -1, -1
        for tensor, dim in frame.places[factor]:
            if frame.sizes[tensor] > size and tensors[tensor].dims[dim][: len(axes)] == axes:
                size, source = frame.sizes[tensor], tensor
        sharded = prod([mesh.axis_size(name) for name in axes]) if is_elementwise else 0
        return (-size, -sharded, source, factor)

    return sorted(wanted, key=key)


def _give(
    frame: Frame,
    tensors: Sequence[PlainTensor],
    changes: dict[int, list[Names]],
    tensor: int,
    factor: int,
    axes: Names,
    limits: Iterable[int],
) -> None:
    """Let a tensor take what it can of the axes along a factor.

    Args:
        frame: The frame of the rule.
        tensors: The tensors before.
        changes: The new axes of tensors; added to.
        tensor: The tensor.
        factor: The factor.
        axes: The axes.
        limits: The tensors that must not have less along the factor (see `limit_to_results`).
    """
    dim = frame.dim_of[tensor].get(factor)
    if dim is None:
        return
    old = tensors[tensor]
    dims: Sequence[Names] = changes.get(tensor, old.dims)
    own = dims[dim]
    count = len(own)
    if old.closed[dim] or count >= len(axes) or axes[:count] != own:
        return
    for name in axes[count:]:
        if name in old.elsewhere or any(name in names for names in dims):
            break
        count += 1
    axes = axes[:count]
    for other in limits:
        place = frame.dim_of[other].get(factor)
        if place is not None:
            limit = changes.get(other, tensors[other].dims)[place]
            if axes[: len(limit)] == limit:
                axes = limit
    if len(axes) > len(own) and axes[: len(own)] == own:
        changes.setdefault(tensor, list(dims))[dim] = axes
