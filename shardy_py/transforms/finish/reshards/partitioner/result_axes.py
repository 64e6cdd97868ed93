"""The choice by kind of op of the axes along which the partitioner computes it: mostly those of its results."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.sharding.projection import Axes
from shardy_py.transforms.finish.reshards.partitioner.elementwise import elementwise_axes
from shardy_py.transforms.finish.reshards.partitioner.following import following_axes
from shardy_py.transforms.finish.reshards.partitioner.joins import joined_axes
from shardy_py.transforms.finish.reshards.partitioner.lookups import is_lookup, lookup_axes
from shardy_py.transforms.finish.reshards.partitioner.op import PartitionedOp
from shardy_py.transforms.finish.reshards.partitioner.scatters import is_scatter, scatter_axes
from shardy_py.transforms.finish.reshards.projection import OpProjection, compatible_axes


def find_result_axes(
    projection: OpProjection,
    operands: int,
    *,
    is_result_open: bool = False,
    is_joined: bool = False,
    sizes: Sequence[int] = (),
) -> list[Axes]:
    """Return the axes of every factor.

    Where operands agree along a reduced factor, each device sums its part. All other axes follow from the results, so
    that operands are gathered along axes that results lack; a reduction of one operand computes on it as it is.

    Args:
        projection: The factor shardings; left as they are.
        operands: The number of operands.
        is_result_open: Whether propagation left the results alone, so that they follow the operands.
        is_joined: Whether the op joins or sorts its operands.
        sizes: The number of elements of every tensor.
    """
    op = PartitionedOp(projection, operands, is_result_open, sizes)
    if is_joined:
        return joined_axes(op)
    agreed = compatible_axes(projection) or elementwise_axes(op)
    if agreed:
        return agreed
    if is_scatter(op):
        return scatter_axes(op)
    return lookup_axes(op) if is_lookup(op) else following_axes(op)
