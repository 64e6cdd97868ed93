"""Checking a plan: does each collective give the sharding it claims?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from shardy_py.ir.graph.op_names import ALL_SLICE
from shardy_py.sharding.axes import AxisRef, add_axis_or_merge, axes_size
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import AllToAllParamList, ListOfAxisRefLists
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.sharding.verify import verify_tensor_sharding
from shardy_py.transforms.finish.collectives.alignment import AxesPerDim
from shardy_py.transforms.finish.collectives.collective import Collective


def is_valid(source: TensorSharding, plan: Iterable[Collective], mesh: Mesh) -> bool:
    """Return whether every collective of a plan, from a source sharding on, is one that MLIR's verifier accepts."""
    operand = source
    for collective in plan:
        result = collective.out_sharding
        if verify_tensor_sharding(result, mesh) or _has_problem(collective, mesh):
            return False
        if not _leads_to(operand, collective, mesh):
            return False
        operand = result
    return True


def _has_problem(collective: Collective, mesh: Mesh) -> bool:
    """Return whether the axes of a collective contradict each other."""
    value = collective.value
    if not isinstance(value, ListOfAxisRefLists):
        return False
    dims = tuple(DimensionSharding(axes) for axes in value.axes_per_dim)
    return bool(verify_tensor_sharding(evolve(collective.out_sharding, dim_shardings=dims, unreduced_axes=()), mesh))


def _leads_to(operand: TensorSharding, collective: Collective, mesh: Mesh) -> bool:
    axes: AxesPerDim = [list(dim.axes) for dim in operand.dim_shardings]
    wanted: AxesPerDim = [list(dim.axes) for dim in collective.out_sharding.dim_shardings]
    value = collective.value
    if isinstance(value, AllToAllParamList):
        return (
            all(
                _remove(axes[param.src_dim], param.axes, mesh) and _append(axes[param.tgt_dim], param.axes, mesh)
                for param in value.params
            )
            and axes == wanted
        )
    if value is None:
        return [axes_size(dim, mesh) for dim in axes] == [axes_size(dim, mesh) for dim in wanted]
    apply = _append if collective.name == ALL_SLICE else _remove
    return all(apply(*pair, mesh) for pair in zip(axes, value.axes_per_dim, strict=True)) and axes == wanted


def _append(axes: list[AxisRef], added: Sequence[AxisRef], mesh: Mesh) -> bool:
    for axis in added:
        add_axis_or_merge(axes, axis, mesh)
    return True


def _remove(axes: list[AxisRef], removed: Sequence[AxisRef], mesh: Mesh) -> bool:
    """Take axes from the end of a list; return whether they are there."""
    for axis in reversed(removed):
        if not axes or not axis.suffix_of(axes[-1], mesh):
            return False
        prefix = axes[-1].prefix_without_overlap(axis)
        axes[-1:] = [] if prefix is None else [prefix]
    return True
