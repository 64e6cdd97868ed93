"""Dimensions along which XLA's partitioner gives wrong numbers for an op, refuses it, or ends the process."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.shardings import mesh_of
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.axis_lists import AxisList
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

CONVOLUTION = "stablehlo.convolution"
_REDUCE_WINDOW = "stablehlo.reduce_window"
_DIMENSION_NUMBERS = {"stablehlo.gather": "dimension_numbers", "stablehlo.scatter": "scatter_dimension_numbers"}
_INDEX_VECTOR_DIM = re.compile(r"index_vector_dim = (\d+)").search
_BRACKETS = re.compile(r"\[([^\]]*)\]").findall
_LIST = re.compile(r"(\w+) = \[([^\]]*)\]").findall


def overlapping_windows(op: Op) -> list[int]:
    """Return the dimensions of a ``select_and_scatter`` with windows of at least two strides."""
    ones = (1,) * len(op.operands[0].shape)
    windows, strides = (op.attributes.get(f"window_{name}") or ones for name in ("dimensions", "strides"))
    pairs = enumerate(zip(windows, strides, strict=True))
    return [dim for dim, (window, stride) in pairs if window > 1 and window >= 2 * stride]


def ending_dims(op: Op) -> list[int]:
    """Return the dimensions of a ``pad`` or ``reduce_window`` that may end the process wherever they are sharded.

    As in XLA's spmd_partitioner.cc::ReshardAsWindowedInput: what is cut off in front must be whole steps of the
    dilation, and no more than there is. Windows over dilated elements fail other checks.
    """
    dilations = enumerate(_dilations(op))
    if op.name == _REDUCE_WINDOW:
        return [dim for dim, (_, _, step) in dilations if step > 1]
    return [dim for dim, (size, low, step) in dilations if low < 0 and (low % step or low < -((size - 1) * step + 1))]


def dilated_dims(program: Program, op: Op) -> list[int]:
    """Return the dimensions of a ``pad`` or ``reduce_window`` that XLA partitions wrongly, or not at all.

    Besides `ending_dims` these are dilated ones whose size does not fit the number of the result's shards.
    """
    ending = ending_dims(op)
    counts = _shard_counts(program, op)
    dims = enumerate(zip(_dilations(op), counts, strict=True))
    return [dim for dim, ((size, _, step), count) in dims if dim in ending or (step > 1 and not _fits(size, count))]


def _fits(size: int, count: int) -> bool:
    return size == 0 or size % count == 0 or count % size == 0


def _dilations(op: Op) -> Iterator[tuple[int, int, int]]:
    """Iterate over the size, the padding in front and the step between elements of each dimension."""
    shape = op.operands[0].shape
    if op.name == "stablehlo.pad":
        lows = op.attributes.get("edge_padding_low") or ()
        steps = tuple(gap + 1 for gap in op.attributes.get("interior_padding") or ())
    else:
        lows = _lows(op, len(shape))
        steps = op.attributes.get("base_dilations") or (1,) * len(shape)
    return ((size or 0, low, step) for size, low, step in zip(shape, lows, steps, strict=True))


def _shard_counts(program: Program, op: Op) -> Sequence[int]:
    sharding = program.shardings.get(op.results[0].id)
    if sharding is None:
        return (1,) * len(op.results[0].shape)
    mesh = mesh_of(sharding, program.meshes)
    return [dim.sharded_size(mesh) for dim in sharding.dim_shardings]


def index_vector_dims(op: Op) -> list[int]:
    """Return the dimension of the indices of a ``gather`` or ``scatter`` that holds the parts of one index, if any.

    XLA refuses to partition along it, or ends the process.
    """
    match = _INDEX_VECTOR_DIM(str(op.attributes.get(_DIMENSION_NUMBERS[op.name])))
    dim = int(match[1]) if match else 0
    return [dim] if dim < len(op.operands[indices_of(op)].shape) else []


def indices_of(op: Op) -> int:
    """Return the number of the operand with the indices of a ``gather`` or ``scatter``."""
    return len(op.results)


def scattered_sum_dims(program: Program, op: Op) -> list[int]:
    """Return the dimensions of a product or convolution along which XLA adds up parts of different elements.

    The result has some of the axes that the contracting dimensions are sharded along, and all others along one
    dimension, in another order than an operand: its axes, then the missing ones in the order of the mesh. The sum is
    that of XLA's dot_handler.cc::PartitionDotGroupOnContractingImpl.
    """
    left, right, result = (program.shardings.get(value.id) for value in (*op.operands, *op.results))
    if left is None or right is None or result is None or not left.mesh == right.mesh == result.mesh:
        return []
    mesh = mesh_of(result, program.meshes)
    summed, others = map(_axes_along, (left, right), _summed_dims(op))
    if not summed or set(summed) != set(others):
        return []
    axes_per_dim = [_large_axes(dim.axes, mesh) for dim in result.dim_shardings]
    scattered = [dim for dim, axes in enumerate(axes_per_dim) if axes and set(axes) <= set(summed)]
    rest = [axes for dim, axes in enumerate(axes_per_dim) if axes and dim not in scattered]
    if not scattered or len(rest) != 1 or len(rest[0]) < 2:
        return []
    if axes_size((*summed, *rest[0]), mesh) != mesh.total_size:
        return []
    agrees = all(_order(operand, summed, rest[0], mesh) == rest[0] for operand in (left, right))
    return [] if agrees else scattered


def sharded_kernel_dims(program: Program, op: Op) -> list[int]:
    """Return the dimensions along which the kernel of a convolution is sharded, where XLA then adds up too much.

    That is where the input is sharded along a spatial dimension and several devices have the same part of it: parts of
    the sum count as often. As in XLA's convolution_handler.cc.
    """
    left, right = (program.shardings.get(value.id) for value in op.operands)
    if left is None or right is None:
        return []
    mesh = mesh_of(left, program.meshes)
    axes = [axis for dim in left.dim_shardings for axis in _large_axes(dim.axes, mesh)]
    names, *_ = convolution_dims(op)
    is_spatial = any(name.isdigit() and dim.axes for name, dim in zip(names, left.dim_shardings, strict=True))
    if not is_spatial or axes_size(axes, mesh) == mesh.total_size:
        return []
    return [dim for dim, sharding in enumerate(right.dim_shardings) if sharding.axes]


def dilated_spatial_dims(op: Op) -> list[tuple[int, int]]:
    """Return the dimensions of input and result along which XLA partitions a dilated input wrongly, or not at all.

    These are spatial ones with elements in between that the result has at another place, or whose padding cuts off no
    whole steps in front.
    """
    steps = op.attributes.get("lhs_dilation") or ()
    of_input, _, of_result = convolution_dims(op)
    pairs = []
    for number, (step, low) in enumerate(zip(steps, _lows(op, len(steps)), strict=False)):
        pair = of_input.index(str(number)), of_result.index(str(number))
        if step > 1 and (pair[0] != pair[1] or (low < 0 and low % step)):
            pairs.append(pair)
    return pairs


def _lows(op: Op, count: int) -> Sequence[int]:
    """Return the padding in front of each of the dimensions that an op has a padding of."""
    padding = op.attributes.get("padding")
    values = padding.values if isinstance(padding, DenseElements) else (0,)
    # A splat may come with its one value only.
    return values[::2] if len(values) > 1 else tuple(values) * count


def convolution_dims(op: Op) -> list[list[str]]:
    """Return the names of the dimensions of input, kernel and result: ``b``, ``f``, ``i``, ``o``, and numbers."""
    return [re.split(r",\s*", dims) for dims in _BRACKETS(str(op.attributes.get("dimension_numbers")))]


def _summed_dims(op: Op) -> tuple[Sequence[int], Sequence[int]]:
    """Return the dimensions of both operands that are summed over, without those of windows."""
    if op.name == CONVOLUTION:
        left, right, _ = convolution_dims(op)
        return [left.index("f")], [right.index("i")]
    lists = dict(_LIST(str(op.attributes.get("dot_dimension_numbers") or "")))
    left, right = (lists.get(f"{side}_contracting_dimensions", "").split(",") for side in ("lhs", "rhs"))
    return [int(dim) for dim in left if dim.strip()], [int(dim) for dim in right if dim.strip()]


def _axes_along(sharding: TensorSharding, dims: Iterable[int]) -> AxisList:
    return tuple(axis for dim in dims for axis in sharding.dim_shardings[dim].axes)


def _large_axes(axes: Iterable[AxisRef], mesh: Mesh) -> AxisList:
    return tuple(axis for axis in axes if axis.size(mesh) > 1)


def _order(operand: TensorSharding, summed: Collection[AxisRef], axes: AxisList, mesh: Mesh) -> AxisList:
    operand_axes = [axis for dim in operand.dim_shardings for axis in _large_axes(dim.axes, mesh) if axis not in summed]
    return (*operand_axes, *sorted((axis for axis in axes if axis not in operand_axes), key=mesh.sort_key))
