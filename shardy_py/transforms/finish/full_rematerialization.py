"""Reshards that XLA's SPMD partitioner can only do by making the tensor whole on every device.

Mirrors spmd_partitioner.cc::PartitionedHlo::ReshardNoCache from the question whether an all-to-all leads to the target
(``GetReshardAllToAllSourceTargetDims``) to its last resort, the "involuntary full rematerialization".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.axis_lists import greatest_common_prefix
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding


def is_fully_rematerialized(before: TensorSharding, after: TensorSharding, mesh: Mesh) -> bool:
    """Return whether XLA replicates a tensor and slices it to get from one sharding to another.

    Both divide the tensor into equally many parts. An all-to-all leads to the target where the dimensions that change
    have the same numbers of parts in another order; where two dimensions become one or one becomes two, a reshape and
    an all-to-all do. XLA tries these, two dimensions at a time, and knows no longer ways.
    """
    if before.mesh != after.mesh or before.rank != after.rank or before.unreduced_axes or after.unreduced_axes:
        return False
    parts = [_parts(sharding, mesh) for sharding in (before, after)]
    return _product(parts[0]) == _product(parts[1]) and _needs_replication(*parts)


def sharding_between_steps(before: TensorSharding, after: TensorSharding, mesh: Mesh) -> TensorSharding | None:
    """Return a sharding through which XLA gets from one to another without making the tensor whole; None for none."""
    for between in _moved_once(before, after):
        has_way = not is_fully_rematerialized(before, between, mesh) and not is_fully_rematerialized(
            between, after, mesh
        )
        if has_way and between != before:
            return between
    return None


def _parts(sharding: TensorSharding, mesh: Mesh) -> list[int]:
    return [axes_size(dim.axes, mesh) for dim in sharding.dim_shardings]


def _product(parts: Sequence[int]) -> int:
    product = 1
    for count in parts:
        product *= count
    return product


def _needs_replication(source: list[int], target: list[int]) -> bool:
    """Return whether neither an all-to-all nor merging and splitting pairs of dimensions leads to the target."""
    source = list(source)
    while True:
        changed = [dim for dim, count in enumerate(source) if count != target[dim]]
        if sorted(source[dim] for dim in changed) == sorted(target[dim] for dim in changed):
            return False
        pairs = [
            (one, other)
            for one, other in combinations(changed, 2)
            if source[one] * source[other] == target[one] * target[other]
        ]
        if not pairs:
            return True
        for dim in pairs[0]:
            source[dim] = target[dim]


def _moved_once(before: TensorSharding, after: TensorSharding) -> Iterator[TensorSharding]:
    """Yield the shardings in which the axes of one dimension are where the target has them, and the others stay."""
    old, new = ([dim.axes for dim in sharding.dim_shardings] for sharding in (before, after))
    for dim, axes in enumerate(old):
        kept = greatest_common_prefix(axes, new[dim])
        moved = axes[len(kept) :]
        goal = next((other for other, wanted in enumerate(new) if other != dim and set(moved) & set(wanted)), None)
        if not moved or goal is None:
            continue
        dims = list(old)
        dims[dim] = kept
        dims[goal] = tuple(axis for axis in new[goal] if axis in moved or axis in old[goal])
        yield TensorSharding(before.mesh, tuple(DimensionSharding(item) for item in dims))
