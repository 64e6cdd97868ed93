"""Products of groups of rows, whose sizes are data: `ragged_dot` of CHLO and MHLO."""

from __future__ import annotations

from collections.abc import Iterable

from shardy_dialects.stablehlo.attributes import dimension_numbers_of
from shardy_py.ir.graph.program import Op
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import OpShardingRuleBuilder, tensor_shape


def ragged_dot_rule(op: Op) -> OpShardingRule | None:
    """Return the rule of a product whose ragged dimension is free, contracted or a batch.

    With batch b, rows m, columns n, contraction k and groups g these are ``[b,m,k], [g,b,k,n], [b,g] -> [b,m,n]``,
    ``[b,m,k], [b,k,n], [b,g] -> [g,b,m,n]`` and ``[b,m,k], [b,k,n], [g] -> [b,m,n]``. Where a group begins depends on
    the data, so that a ragged m or k is replicated, and so are the groups.

    XLA has this rule in ``sdy/…/extensions/mhlo_extensions.cc``; its dumps print the same.
    """
    numbers = dimension_numbers_of(op, "ragged_dot_dimension_numbers")
    lhs_batch, rhs_batch = numbers.dims("lhs_batching_dimensions"), numbers.dims("rhs_batching_dimensions")
    lhs_reduced, rhs_reduced = numbers.dims("lhs_contracting_dimensions"), numbers.dims("rhs_contracting_dimensions")
    ragged_dims, groups = numbers.dims("lhs_ragged_dimensions"), numbers.dims("rhs_group_dimensions")
    if len(ragged_dims) != 1 or len(op.operands) != 3:
        return None
    ragged = ragged_dims[0]
    is_contracting, is_batch = ragged in lhs_reduced, ragged in lhs_batch
    if len(groups) != (0 if is_contracting or is_batch else 1):
        return None
    lhs, rhs, sizes = (tensor_shape(value) for value in op.operands)
    lhs_free = _others(len(lhs), (*lhs_batch, *lhs_reduced))
    # The sizes of groups have the dimensions that stand before the ragged one in the rule, then the groups.
    before = [*lhs_batch, *(lhs_reduced if is_contracting else lhs_free)]
    sized = {} if is_batch else {dim: number for number, dim in enumerate(before[: before.index(ragged)])}
    builder = OpShardingRuleBuilder.for_op(op)
    out_dim = 1 if is_contracting else 0
    for lhs_dim, rhs_dim in zip(lhs_batch, rhs_batch, strict=True):
        builder.add_factor([lhs_dim, rhs_dim, sized.get(lhs_dim)], [out_dim], lhs[lhs_dim])
        out_dim += 1
    for dim in lhs_free:
        kind = FactorKind.NEED_REPLICATION if dim == ragged else FactorKind.PASS_THROUGH
        builder.add_factor([dim, None, sized.get(dim)], [out_dim], lhs[dim], kind=kind)
        out_dim += 1
    for dim in _others(len(rhs), (*rhs_batch, *rhs_reduced, *groups)):
        builder.add_factor([None, dim, None], [out_dim], rhs[dim])
        out_dim += 1
    for lhs_dim, rhs_dim in zip(lhs_reduced, rhs_reduced, strict=True):
        kind = FactorKind.NEED_REPLICATION if lhs_dim == ragged else FactorKind.REDUCTION
        builder.add_factor([lhs_dim, rhs_dim, sized.get(lhs_dim)], [None], lhs[lhs_dim], kind=kind)
    if not is_batch:
        last = len(sizes) - 1
        group_dim, result_dim = (None, 0) if is_contracting else (groups[0], None)
        kind = FactorKind.NEED_REPLICATION
        builder.add_factor([None, group_dim, last], [result_dim], sizes[last], kind=kind)
    return builder.build()


def free_ragged_dot_rule(op: Op) -> OpShardingRule | None:
    """Return the rule of a ragged dot whose ragged dimension is a free one of the left side; others have none."""
    numbers = dimension_numbers_of(op, "ragged_dot_dimension_numbers")
    return ragged_dot_rule(op) if numbers.dims("rhs_group_dimensions") else None


def _others(rank: int, dims: Iterable[int]) -> list[int]:
    excluded = set(dims)
    return [dim for dim in range(rank) if dim not in excluded]
