"""Rewrite patterns that remove collectives or replace them by cheaper ones.

Mirrors canonicalization.td::AllToAllFusionPattern, canonicalization.cc::AllReduceOfShardedToUnreducedPattern and
canonicalization.cc::ReduceScatterFusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from shardy_py.ir.graph.attributes import Attribute, RawAttribute
from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    REDUCE_SCATTER,
    REPLICATED_TO_UNREDUCED,
    SHARDED_TO_UNREDUCED,
)
from shardy_py.ir.graph.program import Op
from shardy_py.sharding.axes import AxisRef, add_axis_or_merge
from shardy_py.sharding.axis_lists import sort_and_merge
from shardy_py.sharding.combiner import parse_reduction_op, reduction_op_text
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.op_attributes import ListOfAxisRefLists
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.finish.collectives.rewriter import Pattern, Rewriter
from shardy_py.transforms.finish.collectives.search_state import AxesPerDim
from shardy_py.values import frozen


def fuse_into_reduce_scatter(rewriter: Rewriter, op: Op) -> bool:
    """Replace an all-reduce and equal all-slices of it by one reduce-scatter; axes that do not match stay an all-slice.

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
    attributes: dict[str, Attribute] = {"reduce_scatter_axes": split.scattered}
    reduction = parse_reduction_op(reduce.attributes.get("reduction_op"))
    if reduction != "sum":
        attributes["reduction_op"] = RawAttribute(reduction_op_text(reduction))
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
    unsliced = dict.fromkeys(reduction)
    lengths = []
    for axes in slicing:
        length = 0
        while length < len(axes) and axes[length] in unsliced:
            del unsliced[axes[length]]
            length += 1
        lengths.append(length)
    if unsliced:
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


def _operand_made_by(op: Op, name: str) -> Op | None:
    producer = op.operands[0].defining_op
    return producer if producer is not None and producer.name == name else None


def drop_gather_of_nothing(rewriter: Rewriter, op: Op) -> bool:
    """Replace an all-gather along no axes by its operand.

    Mirrors canonicalization.td::AllGatherNoopPattern.
    """
    return _drop_if(rewriter, op, matches=op.attributes["gathering_axes"].is_empty)


def drop_slice_of_nothing(rewriter: Rewriter, op: Op) -> bool:
    """Replace an all-slice along no axes by its operand.

    Mirrors canonicalization.td::AllSliceNoopPattern.
    """
    return _drop_if(rewriter, op, matches=op.attributes["slicing_axes"].is_empty)


def drop_reduce_scatter_of_nothing(rewriter: Rewriter, op: Op) -> bool:
    """Replace a reduce-scatter along no axes by its operand.

    Mirrors canonicalization.td::ReduceScatterNoopPattern.
    """
    return _drop_if(rewriter, op, matches=op.attributes["reduce_scatter_axes"].is_empty)


def drop_reduce_of_nothing(rewriter: Rewriter, op: Op) -> bool:
    """Replace an all-reduce along no axes by its operand.

    Mirrors canonicalization.td::AllReduceNoopPattern.
    """
    return _drop_if(rewriter, op, matches=not op.attributes["reduction_axes"].axes)


def drop_permute_to_same(rewriter: Rewriter, op: Op) -> bool:
    """Replace a collective-permute to the sharding its operand has by the operand.

    Mirrors canonicalization.td::CollectivePermuteNoopPattern.
    """
    carrier = shardable_value(op.operands[0], rewriter.semantics)
    source = None if carrier is None else rewriter.program.sharding(carrier)
    target = rewriter.program.sharding(op.result)
    # Unreduced axes are no matter here, as in the reference.
    same = target is not None and target.is_equivalent(source, ignore_unreduced_axes=True)
    return _drop_if(rewriter, op, matches=same)


def _drop_if(rewriter: Rewriter, op: Op, *, matches: bool) -> bool:
    if matches:
        rewriter.replace(op, op.operands[0])
    return matches


def undo_slice_of_gather(rewriter: Rewriter, op: Op) -> bool:
    """Replace an all-slice of an all-gather along the same axes by the operand of the all-gather.

    Mirrors canonicalization.td::AllSliceOfAllGatherPattern.
    """
    gather = _operand_made_by(op, ALL_GATHER)
    if gather is None or gather.attributes["gathering_axes"] != op.attributes["slicing_axes"]:
        return False
    rewriter.replace(op, gather.operands[0])
    return True


def undo_reduce_of_replicated(rewriter: Rewriter, op: Op) -> bool:
    """Replace an all-reduce of what became unreduced along the same axes by what it was before.

    Mirrors canonicalization.td::AllReduceOfReplicatedToUnreducedPattern.
    """
    source = _operand_made_by(op, REPLICATED_TO_UNREDUCED)
    if source is None or source.attributes["axes"] != op.attributes["reduction_axes"]:
        return False
    rewriter.replace(op, source.operands[0])
    return True


def gather_instead_of_reducing_sharded(rewriter: Rewriter, op: Op) -> bool:
    """Replace an all-reduce of what was made unreduced from being sharded by an all-gather of the same axes.

    Mirrors canonicalization.cc::AllReduceOfShardedToUnreducedPattern.
    """
    source = _operand_made_by(op, SHARDED_TO_UNREDUCED)
    sharding = rewriter.program.sharding(op.result)
    if source is None or sharding is None:
        return False
    axes = source.attributes["axes"]
    mesh = resolve_mesh(sharding.mesh, rewriter.meshes)
    if mesh is None or sort_and_merge(axes.axes(), mesh) != op.attributes["reduction_axes"].axes:
        return False
    attributes = {"gathering_axes": axes}
    rewriter.replace(op, rewriter.insert_before(op, ALL_GATHER, source.operands[0], attributes, sharding))
    return True


def fuse_all_to_alls(rewriter: Rewriter, op: Op) -> bool:
    """Make one all-to-all of two in a row that have no dimension in common.

    Mirrors canonicalization.td::AllToAllFusionPattern.
    """
    inner = _operand_made_by(op, ALL_TO_ALL)
    sharding = rewriter.program.sharding(op.result)
    if inner is None or sharding is None or not inner.result.has_one_use:
        return False
    first, second = inner.attributes["params"], op.attributes["params"]
    if first.overlaps(second):
        return False
    attributes = {"params": first.combined_with(second)}
    rewriter.replace(op, rewriter.insert_before(op, ALL_TO_ALL, inner.operands[0], attributes, sharding))
    return True


def drop_unused_all_to_all(rewriter: Rewriter, op: Op) -> bool:
    """Erase an unused all-to-all, such as the first of two that were fused.

    Mirrors canonicalization.td::AllToAllNoUsePattern.
    """
    if op.result.uses:
        return False
    rewriter.erase(op)
    return True


PATTERNS: Mapping[str, Sequence[Pattern]] = {
    ALL_GATHER: (drop_gather_of_nothing,),
    ALL_REDUCE: (undo_reduce_of_replicated, drop_reduce_of_nothing, gather_instead_of_reducing_sharded),
    ALL_SLICE: (undo_slice_of_gather, drop_slice_of_nothing, fuse_into_reduce_scatter),
    ALL_TO_ALL: (fuse_all_to_alls, drop_unused_all_to_all),
    COLLECTIVE_PERMUTE: (drop_permute_to_same,),
    REDUCE_SCATTER: (drop_reduce_scatter_of_nothing,),
}
"""The patterns by name of the op, those that match two ops first."""
