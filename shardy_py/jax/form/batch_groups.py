"""Shard convolutions of groups of the batch, as gradients of depthwise ones are, in the ways that XLA gets right."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import mesh_of
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.form.constrain_values import closed
from shardy_py.jax.form.faulty_dims import CONVOLUTION, convolution_dims
from shardy_py.jax.form.gather_operands import reshard_operand, reshard_result
from shardy_py.sharding.axes import AxisRef, axes_size
from shardy_py.sharding.axis_lists import AxisList
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import NoFields


class BatchGroupsPass(NoFields):
    """Change the shardings of ``stablehlo.convolution`` with a ``batch_group_count``, between constraints.

    XLA's partitioner adds up the features over all devices, so that parts that several have would count as often: they
    are sharded along all axes of the mesh, or not at all. A result that is sharded along its batch, or along features
    in another way than the kernel, ends the process or is wrong.
    """

    name: ClassVar[str] = "xla-batch-groups"

    def run(self, program: Program, context: PassContext) -> None:
        """Look at the convolutions of all functions."""
        for op in ops_named(program, CONVOLUTION):
            if op.attributes.get("batch_group_count", 1) == 1:
                continue
            left, right, result = (program.shardings.get(value.id) for value in (*op.operands, *op.results))
            of_input, of_kernel, of_result = convolution_dims(op)
            features, kernel_features = of_input.index("f"), of_kernel.index("i")
            if (
                left is not None
                and right is not None
                and _counts_again(program, left, right, features, kernel_features)
            ):
                axes = _all_axes(mesh_of(left, program.meshes), op.operands[0].shape[features])
                reshard_operand(program, op, 0, _only_along(left, features, axes))
                reshard_operand(program, op, 1, _only_along(right, kernel_features, axes))
                if result is not None:
                    reshard_result(program, op, _only_along(result, 0, ()))
            elif result is not None:
                dims = [of_result.index("b")]
                if right is not None and not _is_alike(result, of_result.index("f"), right, of_kernel.index("o")):
                    dims.append(of_result.index("f"))
                if any(result.dim_shardings[dim].axes for dim in dims):
                    reshard_result(program, op, closed(result.with_whole_dims(dims)))


def _is_alike(one: TensorSharding, dim: int, other: TensorSharding, other_dim: int) -> bool:
    return one.dim_shardings[dim].axes == other.dim_shardings[other_dim].axes


def _counts_again(
    program: Program, left: TensorSharding, right: TensorSharding, features: int, kernel_features: int
) -> bool:
    """Return whether features are sharded, and several devices have the same part of the input."""
    mesh = mesh_of(left, program.meshes)
    is_sharded = left.dim_shardings[features].axes or right.dim_shardings[kernel_features].axes
    return bool(is_sharded) and axes_size(list(left.axes()), mesh) != mesh.total_size


def _all_axes(mesh: Mesh, size: int | None) -> AxisList:
    axes = tuple(AxisRef(axis.name) for axis in mesh.axes if axis.size > 1)
    return axes if size is not None and size % mesh.total_size == 0 else ()


def _only_along(sharding: TensorSharding, dim: int, axes: AxisList) -> TensorSharding:
    dims = [DimensionSharding(axes if number == dim else ()) for number in range(sharding.rank)]
    return TensorSharding(sharding.mesh, tuple(dims))
