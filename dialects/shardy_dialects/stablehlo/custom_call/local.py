"""Local forms of custom calls with a known target: what they compute decides, not the way shardings propagate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardy_dialects.stablehlo.attributes import text_of
from shardy_dialects.stablehlo.custom_call import batch_rank
from shardy_dialects.stablehlo.sort.local import localize_top_k
from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.local import Shard, no_local_form

MATRIX_TARGETS = (
    "Cholesky",
    "CompactWyHelper",
    "Eigh",
    "InvertDiagBlocksLowerTriangular",
    "InvertDiagBlocksUpperTriangular",
    "ProductOfElementaryHouseholderReflectors",
    "Qr",
    "QrDecompositionBlock",
)
"""Targets that compute on whole matrices, the last two dimensions, though shardings propagate along them."""


MOVING_TARGETS = (
    "_SPMDInternalOp_MultiPad",
    "_SPMDInternalOp_MultiRotate",
    "_SPMDInternalOp_MultiSlice",
    "_SPMDInternalOp_RotateRight",
    "_SPMDInternalOp_Wrap",
)
"""Targets of the partitioner that move elements along a dimension, which only their configuration names."""


_TOP_K = "mhlo.topk"


def is_known(op: Op) -> bool:
    """Return whether what a call computes is known, and its rule does not tell."""
    target = text_of(op, "call_target_name")
    if target in (*MATRIX_TARGETS, *MOVING_TARGETS) or batch_rank(op):
        return True
    return target == _TOP_K and _takes_largest_of_last(op)


def localize_custom_call(op: Op, shard: Shard) -> Sequence[Value]:
    """Return a call that `is_known` on the shards, where its target computes the same on them.

    Raises:
        CannotLocalize: the target needs more than its shards.
    """
    target = text_of(op, "call_target_name")
    if target == _TOP_K:
        return localize_top_k(op, shard)
    if target in MOVING_TARGETS:
        raise no_local_form(f"{target} moves elements along a dimension that is not known")
    _check_batch(op, shard)
    shard.check_kinds()
    return shard.copy()


def _takes_largest_of_last(op: Op) -> bool:
    """Return whether a call takes the largest elements of the last dimension."""
    attributes = op.attributes.get("mhlo.attributes")
    largest = attributes.get("largest", True) if isinstance(attributes, Mapping) else True
    operand, result = op.operands[0].shape, op.results[0].shape
    return largest is True and operand[:-1] == result[:-1]


def _check_batch(op: Op, shard: Shard) -> None:
    """Check that only dimensions in front of the matrices, or of what a call takes at once, are sharded.

    Raises:
        CannotLocalize: a dimension of the matrices is.
    """
    batch = batch_rank(op) or len(static_shape(op.operands[0].type) or ()) - 2
    for sharding in (*shard.operand_shardings, *shard.result_shardings):
        if any(dim >= batch for dim in shard.sharded_dims(sharding)):
            raise no_local_form("the call computes on whole matrices, and one of their dimensions is sharded")
