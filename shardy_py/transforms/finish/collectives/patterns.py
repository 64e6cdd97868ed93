"""Collectives that can be left out, or replaced by cheaper ones.

Mirrors canonicalization.td::AllToAllFusionPattern and canonicalization.cc::AllReduceOfShardedToUnreducedPattern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from shardy_py.sharding.axis_lists import sort_and_merge
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.transforms.finish.collectives.reduce_scatter import fuse_into_reduce_scatter
from shardy_py.transforms.finish.collectives.rewriter import Pattern, Rewriter


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
    """Replace an all-slice of what was gathered along the same axes by what it was before.

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
    """Erase an all-to-all that nobody uses, such as the first of two that were fused.

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
