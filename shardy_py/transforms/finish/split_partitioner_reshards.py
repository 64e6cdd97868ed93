"""Split reshards into the gather and the slice that XLA's SPMD partitioner makes of some of them.

As in spmd_partitioner.cc::PartitionedHlo::ReshardNoCache, which replicates a tensor and slices it where neither a
permutation, an all-to-all, a slice nor a gather alone leads to the target: from the question whether an all-to-all does
(``GetReshardAllToAllSourceTargetDims``) to its last resort, the "involuntary full rematerialization".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod
from typing import ClassVar

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import mesh_of
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import nearest_location, ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.axes import axes_size
from shardy_py.sharding.axis_lists import any_overlap, greatest_common_prefix
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import Axes
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.support.element_types import mlir_element_bits
from shardy_py.support.texts import format_bytes
from shardy_py.values import NoFields

REMATERIALIZATION = "full-rematerialization"
"""The code of the warning about a tensor that becomes whole on every device."""


class SplitPartitionerReshardsPass(NoFields):
    """Put a reshard before each one that XLA's partitioner carries out by a gather and a slice.

    It stands before `ReshardToCollectivesPass`, for estimates of what XLA does with a propagated program.
    """

    name: ClassVar[str] = "split-partitioner-reshards"

    def run(self, program: Program, context: PassContext) -> None:
        """Split the reshards of all functions."""
        for op in ops_named(program, RESHARD):
            before = program.shardings.get(op.operands[0].id)
            after = program.shardings.get(op.results[0].id)
            if before is None or after is None:
                continue
            mesh = mesh_of(after, program.meshes)
            between = sharding_between(before, after, mesh)
            if between is None and is_fully_rematerialized(before, after, mesh):
                between = TensorSharding.fully_closed(before.mesh, before.rank)
                context.warnings.append(_rematerialization(op, before, after, mesh))
            if between is not None:
                _split(program, op, between)


def _rematerialization(op: Op, before: TensorSharding, after: TensorSharding, mesh: Mesh) -> Diagnostic:
    """Return the warning about a tensor that XLA makes whole on every device."""
    type_ = op.results[0].type
    elements = prod(static_shape(type_) or (0,))
    bits = mlir_element_bits(getattr(type_, "element_type", "")) or 0
    way = sharding_between_steps(before, after, mesh)
    hint = "shard it along one more dimension at a time"
    if way is not None:
        hint = f"constrain it to {way} in between, with jax.lax.with_sharding_constraint: then XLA exchanges parts only"
    message = (
        f"XLA makes a tensor of {format_bytes(elements * bits // 8)} whole on every device to reshard it from {before}"
        f" to {after} (an involuntary full rematerialization)"
    )
    return Diagnostic(REMATERIALIZATION, message, nearest_location(op), _source_of(op), hint)


def _source_of(op: Op) -> str:
    """Return the name of the op whose result is resharded, or "" for an argument."""
    producer = op.operands[0].defining_op
    return "" if producer is None else producer.name


def _split(program: Program, op: Op, between: TensorSharding) -> None:
    value = op.operands[0]
    gather = Op(program, RESHARD, [value], [value.type], {"sharding": between})
    assert op.parent is not None
    op.parent.insert_after(op.prev, gather)
    program.shardings[gather.results[0].id] = between
    op.set_operand(0, gather.results[0])


def sharding_between(before: TensorSharding, after: TensorSharding, mesh: Mesh) -> TensorSharding | None:
    """Return the sharding behind the gather and before the slice of a reshard; None where it takes no such pair.

    It takes one where a dimension loses axes that no other dimension gets, and another dimension gets axes.
    """
    old, new = ([dim.axes for dim in sharding.dim_shardings] for sharding in (before, after))
    if before.mesh != after.mesh or len(old) != len(new) or before.unreduced_axes or after.unreduced_axes:
        return None
    if sorted(axes_size(axes, mesh) for axes in old) == sorted(axes_size(axes, mesh) for axes in new):
        return None
    prefixes = [greatest_common_prefix(first, second) for first, second in zip(old, new, strict=True)]
    losing = [dim for dim, axes in enumerate(old) if axes != prefixes[dim] and new[dim] == prefixes[dim]]
    gaining = [dim for dim, axes in enumerate(new) if axes != prefixes[dim] and old[dim] == prefixes[dim]]
    wanted = tuple(axis for axes in new for axis in axes)
    if not gaining or not any(_loses(old[dim][len(prefixes[dim]) :], wanted) for dim in losing):
        return None
    dims = tuple([DimensionSharding(new[dim] if dim in losing else old[dim]) for dim in range(len(old))])
    return TensorSharding(before.mesh, dims)


def _loses(axes: Axes, wanted: Axes) -> bool:
    """Return whether some of the axes are not wanted."""
    return any(not any_overlap((axis,), wanted) for axis in axes)


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
            (first, second)
            for first, second in combinations(changed, 2)
            if source[first] * source[second] == target[first] * target[second]
        ]
        if not pairs:
            return True
        for dim in pairs[0]:
            source[dim] = target[dim]


def _moved_once(before: TensorSharding, after: TensorSharding) -> Iterator[TensorSharding]:
    """Yield the shardings in which the axes of one dimension are where the target has them, and the others stay."""
    old, new = ([dim.axes for dim in sharding.dim_shardings] for sharding in (before, after))
    for dim, axes in enumerate(old):
        prefix = greatest_common_prefix(axes, new[dim])
        moved = axes[len(prefix) :]
        goal = next((other for other, wanted in enumerate(new) if other != dim and set(moved) & set(wanted)), None)
        if not moved or goal is None:
            continue
        dims = list(old)
        dims[dim] = prefix
        dims[goal] = tuple(axis for axis in new[goal] if axis in moved or axis in old[goal])
        yield TensorSharding(before.mesh, tuple(DimensionSharding(item) for item in dims))
