"""Reshapes whose axes do not fit the factors that both shapes have in common.

Mirrors insert_explicit_reshards.cc::processReshapeWithOverflowAxes.
"""

from __future__ import annotations

from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes, distribute_axes
from shardy_py.transforms.finish.reshards.projection import OpProjection


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
    """Give axes to the factors of a tensor anew; what fits none of them overflows the last one.

    Mirrors insert_explicit_reshards.cc::redistributeAxes.
    """
    rule, factors = projection.rule, projection.tensors[tensor].factors
    order = [factor for dim in rule.mappings[tensor] for factor in dim if factor in factors]
    if not order:
        return
    sizes = [rule.factor_sizes[factor] for factor in order]
    taken, overflow = distribute_axes(axes, sizes, projection.mesh)
    for factor, own in zip(order, taken, strict=True):
        factors[factor].axes, factors[factor].overflow_axes = own, ()
    factors[order[-1]].overflow_axes = overflow
