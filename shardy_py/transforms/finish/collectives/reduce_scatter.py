"""An all-reduce whose result is sliced is a reduce-scatter, which communicates less.

Mirrors canonicalization.cc::ReduceScatterFusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import ALL_REDUCE, ALL_SLICE, REDUCE_SCATTER
from shardy_py.ir.graph.program import Op
from shardy_py.sharding.axes import AxisRef, add_axis_or_merge
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import ListOfAxisRefLists
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.finish.collectives.alignment import AxesPerDim
from shardy_py.transforms.finish.collectives.rewriter import Rewriter
from shardy_py.values import frozen


def fuse_into_reduce_scatter(rewriter: Rewriter, op: Op) -> bool:
    """Replace an all-reduce and equal all-slices of it by one reduce-scatter, and an all-slice by what is left.

    All axes that are reduced must be sliced, in each dimension before those that are not. ``op`` is the first of the
    slices.
    """
    reduce = op.operands[0].defining_op
    sliced = rewriter.program.sharding(op.result)
    if reduce is None or sliced is None or reduce.name != ALL_REDUCE or not _is_first_of_equals(op, reduce):
        return False
    split = _split(op.attributes["slicing_axes"].axes_per_dim, reduce.attributes["reduction_axes"].axes)
    if split is None:
        return False
    scattered = _scatter(rewriter, reduce, split, sliced)
    if scattered is None:
        return False
    attributes = {"reduce_scatter_axes": split.scattered}
    if "reduction_op" in reduce.attributes:
        attributes["reduction_op"] = reduce.attributes["reduction_op"]
    result = rewriter.insert_before(op, REDUCE_SCATTER, reduce.operands[0], attributes, scattered)
    if not split.rest.is_empty:
        result = rewriter.insert_before(op, ALL_SLICE, result, {"slicing_axes": split.rest}, sliced)
    for user in reduce.result.users:
        rewriter.replace(user, result)
    rewriter.erase(reduce)
    return True


def _is_first_of_equals(op: Op, reduce: Op) -> bool:
    """Return whether all users of an all-reduce slice it like ``op``, and come after it."""
    axes = op.attributes["slicing_axes"]
    users = {user.id: user for user in reduce.result.users}
    if any(user.name != op.name or user.attributes["slicing_axes"] != axes for user in users.values()):
        return False
    return len(users) == 1 or not any(before.id in users for before in _ops_before(op))


def _ops_before(op: Op) -> Iterable[Op]:
    before = op.prev
    while before is not None:
        yield before
        before = before.prev


@frozen
class _Split:
    """The axes of an all-slice, split into those of a reduce-scatter and the rest."""

    scattered: ListOfAxisRefLists
    rest: ListOfAxisRefLists


def _split(slicing: Sequence[tuple[AxisRef, ...]], reduction: Sequence[AxisRef]) -> _Split | None:
    """Return the axes of each dimension up to the first that is not reduced, and those from it on.

    None where an axis that is reduced is left over.

    Mirrors canonicalization.cc::matchAndComputeReduceScatterFusionAxes.
    """
    left = dict.fromkeys(reduction)
    lengths = []
    for axes in slicing:
        length = 0
        while length < len(axes) and axes[length] in left:
            del left[axes[length]]
            length += 1
        lengths.append(length)
    if left:
        return None
    pairs = list(zip(slicing, lengths, strict=True))
    return _Split(
        ListOfAxisRefLists(tuple(axes[:length] for axes, length in pairs)),
        ListOfAxisRefLists(tuple(axes[length:] for axes, length in pairs)),
    )


def _scatter(rewriter: Rewriter, reduce: Op, split: _Split, sliced: TensorSharding) -> TensorSharding | None:
    """Return the sharding of the reduce-scatter: that of its operand, with the scattered axes added."""
    reduced = rewriter.program.sharding(reduce.result)
    mesh = None if reduced is None else resolve_mesh(reduced.mesh, rewriter.meshes)
    if reduced is None or mesh is None:
        return None
    carrier = shardable_value(reduce.operands[0], rewriter.semantics)
    operand = None if carrier is None else rewriter.program.sharding(carrier)
    axes: AxesPerDim = [[] for _ in split.scattered.axes_per_dim]
    if operand is not None:
        axes = [list(dim.axes) for dim in operand.dim_shardings]
    for dim_axes, scattered in zip(axes, split.scattered.axes_per_dim, strict=True):
        _append(dim_axes, scattered, mesh)
    dims = tuple(DimensionSharding(tuple(dim_axes)) for dim_axes in axes)
    return evolve(sliced, mesh=reduced.mesh, dim_shardings=dims)


def _append(axes: list[AxisRef], added: Iterable[AxisRef], mesh: Mesh) -> None:
    for axis in added:
        add_axis_or_merge(axes, axis, mesh)
