"""Ops that reshard a result rather than an operand: contractions, and reshapes with axes beyond the factors.

Mirrors insert_explicit_reshards.cc::processDot and insert_explicit_reshards.cc::processReshapeWithOverflowAxes.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.sharding.axis_lists import any_overlap
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes, distribute_axes
from shardy_py.sharding.rule import FactorKind
from shardy_py.transforms.finish.reshards.projection import OpProjection
from shardy_py.values import define

_LHS, _RHS, _RESULT = range(3)


@define
class _Conflict:
    """The one factor along which the result disagrees with an operand, and the axes of that operand."""

    factor: int
    axes: Axes


def shard_result_like_operand(projection: OpProjection, tensor_sizes: Sequence[int]) -> bool:
    """Give the result of a contraction the axes of an operand if that saves a reduce-scatter on a larger tensor.

    This is so if the operands agree, the result disagrees along exactly one factor, is no larger than the operand
    that has it, and takes for that factor exactly the axes that are reduced. Then the product is computed with more
    parts, and an all-reduce and a reshard of the smaller result follow.

    Returns:
        Whether the projection of the result changed.
    """
    conflict = _only_conflict(projection, tensor_sizes)
    if conflict is None:
        return False
    reduced = _reduced_axes(projection)
    entry = projection.tensors[_RESULT].factors[conflict.factor]
    if not entry.axes or entry.axes != reduced:
        return False
    entry.axes = conflict.axes
    return True


def _reduced_axes(projection: OpProjection) -> Axes:
    return tuple(axis for factor in projection.rule.reduction_factors for axis in projection.axes(_LHS, factor) or ())


def _only_conflict(projection: OpProjection, tensor_sizes: Sequence[int]) -> _Conflict | None:
    """Return the only factor along which the result disagrees; None if there is none or another condition fails."""
    conflict: _Conflict | None = None
    free_axes: Axes = ()
    for factor in range(projection.rule.num_factors):
        lhs, rhs = projection.axes(_LHS, factor), projection.axes(_RHS, factor)
        if lhs is not None and rhs is not None:
            if lhs != rhs:
                return None
            if projection.rule.kind(factor) is FactorKind.REDUCTION:
                continue
            axes, size = lhs, max(tensor_sizes[_LHS], tensor_sizes[_RHS])
        else:
            axes = (lhs if lhs is not None else rhs) or ()
            size = tensor_sizes[_LHS if lhs is not None else _RHS]
            if any_overlap(axes, free_axes):
                return None
            free_axes += axes
        if projection.axes(_RESULT, factor) == axes:
            continue
        if not axes or conflict is not None or tensor_sizes[_RESULT] > size:
            return None
        conflict = _Conflict(factor, axes)
    return conflict


def fit_overflow_axes(projection: OpProjection, mesh_name: str | Mesh) -> list[Axes]:
    """Spread the axes of the side with more parts over the factors of both sides; return the axes of every factor.

    The projection ends up with those axes that both sides can take.

    Mirrors insert_explicit_reshards.cc::processReshapeWithOverflowAxes.
    """
    operand, result = 0, len(projection.rule.operand_mappings)
    preferred = operand if projection.sharding_size(operand) >= projection.sharding_size(result) else result
    axes = _all_axes(projection, preferred)
    _redistribute(projection, operand, axes)
    _redistribute(projection, result, axes)
    # Going through shardings merges the parts of each dimension and drops what would be strided.
    shardings = [projection.sharding(tensor, mesh_name) for tensor in range(len(projection.tensors))]
    common = OpProjection.build(projection.rule, shardings, projection.mesh).greatest_common_prefixes()
    for factor, common_axes in enumerate(common):
        projection.update(factor, common_axes)
    return common


def _all_axes(projection: OpProjection, tensor: int) -> Axes:
    factors = projection.tensors[tensor].factors
    entries = [factors[factor] for factor in range(projection.rule.num_factors) if factor in factors]
    return tuple(axis for entry in entries for axis in entry.axes + entry.overflow_axes)


def _redistribute(projection: OpProjection, tensor: int, axes: Axes) -> None:
    """Distribute axes to the factors of a tensor; axes that fit no factor overflow the last one.

    Mirrors insert_explicit_reshards.cc::redistributeAxes.
    """
    rule, factors = projection.rule, projection.tensors[tensor].factors
    order = [factor for dim in rule.mappings[tensor] for factor in dim if factor in factors]
    if not order:
        return
    sizes = [rule.factor_sizes[factor] for factor in order]
    axes_of_factors, overflow = distribute_axes(axes, sizes, projection.mesh)
    for factor, factor_axes in zip(order, axes_of_factors, strict=True):
        factors[factor].axes, factors[factor].overflow_axes = factor_axes, ()
    factors[order[-1]].overflow_axes = overflow
