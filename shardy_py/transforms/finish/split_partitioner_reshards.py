"""Split reshards into the gather and the slice that XLA's SPMD partitioner makes of some of them.

As in spmd_partitioner.cc::PartitionedHlo::ReshardNoCache, which replicates a tensor and slices it where neither a
permutation, an all-to-all, a slice nor a gather alone leads to the target.
"""

from __future__ import annotations

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
from shardy_py.transforms.finish.full_rematerialization import is_fully_rematerialized, sharding_between_steps
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
    made = op.operands[0].defining_op
    return "" if made is None else made.name


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
    kept = [greatest_common_prefix(first, second) for first, second in zip(old, new, strict=True)]
    losing = [dim for dim, axes in enumerate(old) if axes != kept[dim] and new[dim] == kept[dim]]
    gaining = [dim for dim, axes in enumerate(new) if axes != kept[dim] and old[dim] == kept[dim]]
    wanted = tuple(axis for axes in new for axis in axes)
    if not gaining or not any(_loses(old[dim][len(kept[dim]) :], wanted) for dim in losing):
        return None
    dims = tuple([DimensionSharding(new[dim] if dim in losing else old[dim]) for dim in range(len(old))])
    return TensorSharding(before.mesh, dims)


def _loses(axes: Axes, wanted: Axes) -> bool:
    """Return whether some of the axes are not wanted."""
    return any(not any_overlap((axis,), wanted) for axis in axes)
