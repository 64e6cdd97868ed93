"""The local form of a convolution: fewer groups where they are sharded, halos along sharded spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.attributes import ConvolutionDims, parse_convolution_dims
from shardy_dialects.stablehlo.local.footprints import (
    DilatedReads,
    DimensionWindows,
    fetch_footprint,
    read_windows,
    window_changes,
)
from shardy_dialects.stablehlo.local.windows import Cut, common_cut
from shardy_dialects.stablehlo.local.writer import Writer
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.interfaces.local import Shard, no_local_form

_BASE, _STEPS = "lhs_dilation", "rhs_dilation"


def localize_convolution(op: Op, shard: Shard) -> Sequence[Value]:
    """Return the convolution of the shards, with the groups and the windows that are on the device."""
    dims = parse_convolution_dims(str(op.attributes["dimension_numbers"]))
    changes = _groups(op, shard, dims)
    if shard.is_resolved:
        shard.check_kinds()
        return shard.copy(**changes)
    kernel_shape = op.operands[1].shape
    windows = read_windows(op, [kernel_shape[dim] for dim in dims.kernel_spatial], _BASE, _STEPS)
    value, kernel = shard.operands
    spatial = zip(dims.input_spatial, dims.kernel_spatial, dims.output_spatial, strict=True)
    is_moved = False
    for number, (dim, kernel_dim, out_dim) in enumerate(spatial):
        window = windows[number]
        if not _is_cut(shard, dim, kernel_dim, out_dim):
            continue
        if shard.parts(shard.result_shardings[0], out_dim) > 1:
            cut, footprint = _cut_windows(shard, window, dim, kernel_dim, out_dim)
        else:
            cut, footprint = _cut_kernel(shard, window, dim, kernel_dim, out_dim)
        zero = Writer(shard.emit, shard.ops).zero_like(value)
        fetched = fetch_footprint(cut, value, dim, cut.runs(0, dim), footprint, zero)
        value, windows[number], is_moved = fetched.value, window.over(fetched), True
    if not is_moved:
        return shard.copy(**changes)
    changes |= window_changes(windows, _BASE)
    return [shard.emit.op_like(op, [value, kernel], [shard.result_type()], changes).result]


def _is_cut(shard: Shard, dim: int, kernel_dim: int, out_dim: int) -> bool:
    """Return whether a spatial dimension is sharded."""
    shardings = (*shard.operand_shardings, *shard.result_shardings)
    return any(
        shard.parts(sharding, number) > 1
        for sharding, number in zip(shardings, (dim, kernel_dim, out_dim), strict=True)
    )


def _cut_windows(
    shard: Shard, window: DimensionWindows, dim: int, kernel_dim: int, out_dim: int
) -> tuple[Cut, DilatedReads]:
    """Return the cut and the elements that each device reads if the windows are sharded."""
    if shard.parts(shard.operand_shardings[1], kernel_dim) > 1:
        raise no_local_form(f"dimension {kernel_dim} of the kernel is sharded, and the windows are, too")
    cut = common_cut(shard, [(shard.operand_shardings[0], dim)], (shard.result_shardings[0], out_dim))
    return cut, window.footprint(cut.parts, shard.result_shape()[out_dim])


def _cut_kernel(
    shard: Shard, window: DimensionWindows, dim: int, kernel_dim: int, out_dim: int
) -> tuple[Cut, DilatedReads]:
    """Return the cut and the elements that each device reads if the kernel is sharded, where sums are partial."""
    cut = common_cut(shard, [(shard.operand_shardings[0], dim)], (shard.operand_shardings[1], kernel_dim))
    part = shard.operands[1].shape[kernel_dim]
    order = [
        window.size - (position + 1) * part if window.is_reversed else position * part for position in range(cut.parts)
    ]
    starts = [first * window.dilation - window.low for first in order]
    count = shard.result_shape()[out_dim]
    return cut, DilatedReads(
        starts, (count - 1) * window.stride + (part - 1) * window.dilation + 1, window.base_dilation
    )


def _groups(op: Op, shard: Shard, dims: ConvolutionDims) -> dict[str, int]:
    """Return the numbers of groups on each device."""
    features = int(op.attributes["feature_group_count"])
    batches = int(op.attributes["batch_group_count"])
    input_sharding, kernel_sharding = shard.operand_shardings
    outputs = shard.parts(kernel_sharding, dims.kernel_output_feature)
    changes = {"feature_group_count": features, "batch_group_count": batches}
    if features > 1:
        changes["feature_group_count"] = _divided(
            features, shard.parts(input_sharding, dims.input_feature), outputs, "feature"
        )
    if batches > 1:
        changes["batch_group_count"] = _divided(
            batches, shard.parts(input_sharding, dims.input_batch), outputs, "batch"
        )
    return changes


def _divided(groups: int, inputs: int, outputs: int, kind: str) -> int:
    """Return the number of groups on each device.

    Args:
        groups: The number of all groups.
        inputs: The number of parts of the dimension of the input that has the groups.
        outputs: The number of parts of the output features.
        kind: The word for the groups.
    """
    if inputs == outputs and groups % inputs == 0:
        return groups // inputs
    if outputs == 1:
        # The parts of the input lie within the groups, along a reduced factor.
        return groups
    raise no_local_form(f"{groups} {kind} groups cannot be divided among {inputs} parts of the input")
