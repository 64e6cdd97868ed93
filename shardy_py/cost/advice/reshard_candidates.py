"""Reshard candidates: shardings that the tensors of an op would give each other, where they disagree; and idle axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import prod

from attrs import evolve

from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import Solution
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.axis_lists import any_overlap
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import project
from shardy_py.sharding.rule import OpShardingRule, TensorMapping
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.support.identity import identity
from shardy_py.values import frozen

Axes = tuple[AxisRef, ...]
FactorAxes = Mapping[int, Axes]
"""Factor to the axes that a tensor has along it; a factor that the tensor does not have is missing."""


@frozen
class ReshardCandidate:
    """A sharding that one tensor of an op could get from another one, with which it disagrees.

    Args:
        step: The step of the op.
        slot: The slot of the tensor that it is for.
        sharding: The sharding, closed.
    """

    step: int
    slot: int
    sharding: TensorSharding


def conflicting_shardings(problem: Problem, solution: Solution) -> Iterator[ReshardCandidate]:
    """Yield the candidates at all ops whose tensors disagree, in program order.

    Tensors disagree where one factor has different axes in two of them, or where two factors want the same axis.

    Args:
        problem: The problem.
        solution: The shardings that were found.
    """
    known: dict[tuple[int, tuple[int, ...]], tuple[tuple[int, TensorSharding], ...]] = {}
    for step, rule in enumerate(problem.step_rules):
        if rule is None or step in problem.transforms:
            continue
        slots = problem.step_slots[step]
        ids = tuple(solution.shardings[slot] if slot >= 0 else 0 for slot in slots)
        key = identity(rule), ids
        if key not in known:
            known[key] = tuple(_candidates_at_op(problem, rule, ids))
        for number, sharding in known[key]:
            if slots[number] >= 0:
                yield ReshardCandidate(step, slots[number], sharding)


def _candidates_at_op(
    problem: Problem, rule: OpShardingRule, ids: Sequence[int]
) -> Iterator[tuple[int, TensorSharding]]:
    """Yield the number of a tensor of an op with each candidate for its sharding."""
    table = problem.table
    shardings = [table.values[index] for index in ids]
    common = table.common_mesh(ids)
    # Between tensors on several meshes, and on a single device, nothing propagates.
    if common is None or common[1].is_maximal or len(shardings) != len(rule.mappings):
        return
    name, mesh = common
    tensors = [
        _factor_axes(sharding, mapping, rule, mesh) for sharding, mapping in zip(shardings, rule.mappings, strict=True)
    ]
    if not _disagree(tensors):
        return
    offers = _offers(tensors)
    for number, mapping in enumerate(rule.mappings):
        if not mapping:
            continue
        current = shardings[number]
        for factor_axes in _candidate_axes(offers, tensors[number], number):
            candidate = _sharding(name, mapping, factor_axes, rule.factor_sizes, mesh)
            if current is None or not current.is_equivalent(candidate):
                yield number, candidate


@frozen
class _Offer:
    """Axes that tensors of an op have.

    Args:
        axes: The axes.
        with_all: The axes with those of all tensors, which come after them.
        positions: The numbers of the first two tensors that have them.
    """

    axes: FactorAxes
    with_all: FactorAxes
    positions: Sequence[int]


def _offers(tensors: Sequence[FactorAxes]) -> list[_Offer]:
    """Return the axes of tensors, equal ones once: an op may have many operands, and they have few shardings."""
    positions: dict[tuple[tuple[int, Axes], ...], list[int]] = {}
    for number, axes in enumerate(tensors):
        positions.setdefault(tuple(axes.items()), []).append(number)
    distinct = [tensors[numbers[0]] for numbers in positions.values()]
    return [
        _Offer(axes, _joined((axes, *distinct)), numbers[:2])
        for axes, numbers in zip(distinct, positions.values(), strict=True)
        if any(axes.values())
    ]


def _candidate_axes(offers: Iterable[_Offer], current: FactorAxes, number: int) -> Iterator[FactorAxes]:
    """Yield candidate axes of a tensor: those of each other tensor alone, with its current ones, with all, and none."""
    by_first: dict[int, _Offer] = {}
    for offer in offers:
        first = next((other for other in offer.positions if other != number), None)
        if first is not None:
            by_first[first] = offer
    for first in sorted(by_first):
        offer = by_first[first]
        yield offer.axes
        yield _joined((offer.axes, current))
        yield offer.with_all
    yield {}


def _disagree(tensors: Sequence[FactorAxes]) -> bool:
    of_factor: dict[int, set[Axes]] = {}
    for tensor in tensors:
        for factor, axes in tensor.items():
            of_factor.setdefault(factor, set()).add(axes)
    if any(len(axis_lists) > 1 for axis_lists in of_factor.values()):
        return True
    every = [axis for axis_lists in of_factor.values() for axes in axis_lists for axis in axes]
    return len(every) != len(set(every))


def _factor_axes(
    sharding: TensorSharding | None, mapping: TensorMapping, rule: OpShardingRule, mesh: Mesh
) -> FactorAxes:
    projected = project(sharding, mapping, rule.factor_sizes, mesh).factors
    return {
        factor: factor_sharding.axes for factor, factor_sharding in projected.items() if rule.factor_sizes[factor] != 1
    }


def _joined(tensors: Iterable[FactorAxes]) -> FactorAxes:
    """Return the axes of tensors by factor; those of an earlier tensor come first, and none is used twice."""
    axes_by_factor: dict[int, Axes] = {}
    used: Axes = ()
    for tensor in tensors:
        for factor, axes in tensor.items():
            if axes and not axes_by_factor.get(factor) and not any_overlap(axes, used):
                axes_by_factor[factor] = axes
                used += axes
    return axes_by_factor


def _sharding(
    name: str | Mesh, mapping: TensorMapping, axes_by_factor: FactorAxes, sizes: Sequence[int], mesh: Mesh
) -> TensorSharding:
    """Return the closed sharding of a tensor by the axes of its factors; axes that do not divide are left out."""
    used: list[AxisRef] = []
    dims = []
    for factors in mapping:
        size = prod(sizes[factor] for factor in factors)
        axes: list[AxisRef] = []
        for axis in chain.from_iterable(axes_by_factor.get(factor, ()) for factor in factors):
            # A user of JAX can write whole axes only.
            is_whole = axis.sub_axis is None and not any_overlap((axis,), used)
            if is_whole and size % axes_size((*axes, axis), mesh) == 0:
                axes.append(axis)
                used.append(axis)
        dims.append(DimensionSharding(tuple(axes), is_closed=True))
    return TensorSharding(name, tuple(dims))


def idle_axes(problem: Problem, solution: Solution, slots: Iterable[int]) -> Iterator[tuple[int, TensorSharding]]:
    """Yield slots with shardings that have one more axis than they were found with, as the minor one of a dimension.

    Args:
        problem: The problem.
        solution: The shardings that were found.
        slots: The slots; those without a sharding are left out.
    """
    for slot in slots:
        sharding = problem.table.values[solution.shardings[slot]]
        if sharding is None:
            continue
        mesh = problem.table.mesh_of(sharding)
        shape = problem.slot_values[slot].shape
        used = tuple(sharding.axes())
        if any(axis.sub_axis for axis in used):
            continue
        free = [AxisRef(axis.name) for axis in mesh.axes if not any_overlap((AxisRef(axis.name),), used)]
        closed = tuple(evolve(dim_sharding, is_closed=True, priority=None) for dim_sharding in sharding.dim_shardings)
        for axis in free:
            for number, dim in enumerate(sharding.dim_shardings):
                axes = (*dim.axes, axis)
                if shape[number] % axes_size(axes, mesh) == 0:
                    sharded_dim = DimensionSharding(axes, is_closed=True)
                    yield slot, TensorSharding(sharding.mesh, (*closed[:number], sharded_dim, *closed[number + 1 :]))
