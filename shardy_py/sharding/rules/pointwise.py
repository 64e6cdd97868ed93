"""Rules of ops that compute each element from elements at the same index: equal shapes, or broadcast."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import HasShardableValues, OpShardingRuleBuilder, Shape, tensor_shape
from shardy_py.sharding.rules.checks import (
    dims_of,
    first_shapes,
    is_static,
    numbers_of,
    operand_shapes,
    result_shapes,
    tensors,
    unfit,
)
from shardy_py.sharding.unknown_size import is_known


def elementwise(op: HasShardableValues) -> OpShardingRule | None:
    """Return the rule of an op whose tensors all have the same shape and sharding.

    It is the rule of an `Elementwise` op that has none. Values that are not tensors, such as tokens, have no part.

    Args:
        op: The op.

    Returns:
        The rule; None for an op without tensors or with an unknown size.

    Raises:
        RuleError: the tensors have different shapes.
    """
    shapes = [tensor_shape(value) for value in tensors(op)]
    if not shapes or not is_static(op):
        return None
    if any(shape != shapes[0] for shape in shapes):
        hint = "for operands that are repeated as in numpy give rule=sdy.rules.broadcast, or write the rule as a text"
        raise unfit(op, "elementwise", "needs tensors of one shape", hint=hint)
    return along(op, ())


def broadcast(op: HasShardableValues) -> OpShardingRule | None:
    """Return the rule of an op that repeats its operands along dimensions they lack or have size 1 in, as numpy does.

    The last dimensions correspond. All results have the shape to which the operands broadcast.

    Args:
        op: The op.

    Returns:
        The rule; None for an op without tensors or with an unknown size.

    Raises:
        RuleError: the operands do not broadcast to the shape of the results.
    """
    if not tensors(op) or not is_static(op):
        return None
    outs = {tensor_shape(value) for value in op.results}
    if len(outs) != 1:
        raise unfit(op, "broadcast", "needs results of one shape")
    (out,) = outs
    aligned = [_aligned(op, shape, out) for shape in operand_shapes(op)]
    unknown = {dim for shape in operand_shapes(op) for dim in _open_dims(shape, out)}
    if op.operands and any(size != 1 and not any(dim in dims for dims in aligned) for dim, size in enumerate(out)):
        raise unfit(op, "broadcast", "needs each dimension of the result in an operand", hint="see rules.broadcast_to")
    return aligned_rule(op, aligned, replicated=unknown)


def _aligned(op: HasShardableValues, shape: Shape, out: Shape) -> dict[int, int]:
    """Return result dimension to operand dimension, for those that are not repeated."""
    shift, unknown = len(out) - len(shape), _open_dims(shape, out)
    if shift < 0 or any(
        size not in (1, out[shift + dim]) and shift + dim not in unknown for dim, size in enumerate(shape)
    ):
        raise unfit(op, "broadcast", "needs operands that broadcast to the result")
    return {shift + dim: dim for dim, size in enumerate(shape) if size == out[shift + dim] or shift + dim in unknown}


def _open_dims(shape: Shape, out: Shape) -> list[int]:
    """Return the dimensions of the result of which an operand may have all elements or one: one size is not known."""
    shift = max(len(out) - len(shape), 0)
    pairs = [(size, out[shift + dim], shift + dim) for dim, size in enumerate(shape[: len(out)])]
    return [dim for size, full, dim in pairs if size != full and size != 1 and not (is_known(size) and is_known(full))]


def aligned_rule(
    op: HasShardableValues, aligned: Sequence[dict[int, int]], *, replicated: Collection[int] = ()
) -> OpShardingRule:
    """Return the rule in which each dimension of the results has a factor.

    Args:
        op: The op; its results have one shape.
        aligned: For each operand, result dimension to operand dimension; other dimensions have no part.
        replicated: Dimensions that need replication.
    """
    builder = OpShardingRuleBuilder.for_op(op)
    for dim, size in enumerate(tensor_shape(op.results[0])):
        kind = FactorKind.NEED_REPLICATION if dim in replicated else FactorKind.PASS_THROUGH
        builder.add_factor([dims.get(dim) for dims in aligned], [dim] * len(op.results), size, kind=kind)
    return builder.build()


def broadcast_to(op: HasShardableValues, dims: Iterable[int] | None = None) -> OpShardingRule | None:
    """Return the rule of an op that repeats its first operand along new dimensions, and along those of size 1.

    Args:
        op: The op; its other operands have no part.
        dims: For each dimension of the operand that of the result; by default the last ones.

    Raises:
        RuleError: a dimension does not exist, or has another size that is not 1.
    """
    if not is_static(op):
        return None
    shape, out = first_shapes(op, "broadcast_to")
    targets = range(len(out) - len(shape), len(out)) if dims is None else numbers_of(op, "broadcast_to", dims)
    if len(targets) != len(shape) or len(set(targets)) != len(targets):
        raise unfit(op, "broadcast_to", "needs a dimension of the result for each one of the operand")
    if any(not 0 <= target < len(out) for target in targets):
        raise unfit(op, "broadcast_to", f"needs dimensions of the result, 0 to {len(out) - 1}")
    if any(size not in (1, out[target]) for size, target in zip(shape, targets, strict=True)):
        raise unfit(op, "broadcast_to", "needs dimensions of the size of the result, or of size 1")
    return expanded_rule(op, {target: dim for dim, target in enumerate(targets)})


def expanded_rule(op: HasShardableValues, in_dims: dict[int, int]) -> OpShardingRule:
    """Return the rule that ties dimensions of the first operand to those of the result; those expanded from 1 are free.

    Args:
        op: The op.
        in_dims: Result dimension to operand dimension.
    """
    in_shape = tensor_shape(op.operands[0])
    others: list[int | None] = [None] * (len(op.operands) - 1)
    builder = OpShardingRuleBuilder.for_op(op)
    for out_dim, out_size in enumerate(tensor_shape(op.results[0])):
        in_dim = in_dims.get(out_dim)
        if in_dim is not None and in_shape[in_dim] == 1 and out_size != 1:
            builder.add_factor([in_dim, *others], [None], 1)
            in_dim = None
        builder.add_factor([in_dim, *others], [out_dim], out_size)
    return builder.build()


def along(
    op: HasShardableValues,
    dims: int | Iterable[int],
    *,
    kind: FactorKind = FactorKind.NEED_REPLICATION,
) -> OpShardingRule | None:
    """Return the rule of an op that needs some dimensions replicated, and treats the others pointwise.

    So are softmax, normalization, sort, cumulative sum, FFT along ``dims``; with ``kind=FactorKind.PERMUTATION`` what
    moves elements along them: reverse, roll, pad, slice. All tensors have one rank, and one size in each other
    dimension; scalars, and values that are not tensors, have no part.

    Args:
        op: The op.
        dims: The dimensions; negative ones count from the end.
        kind: What they need.

    Returns:
        The rule; None for an op with an unknown size.

    Raises:
        RuleError: the tensors have different ranks, or sizes along other dimensions.
    """
    if not is_static(op):
        return None
    shapes = [shape for shape in (*operand_shapes(op), *result_shapes(op)) if shape]
    if len({len(shape) for shape in shapes}) > 1:
        raise unfit(op, "along", "needs tensors of one rank, besides scalars")
    rank = len(shapes[0]) if shapes else 0
    special = dims_of(op, "along", dims, rank)
    builder = OpShardingRuleBuilder.for_op(op)
    for dim in range(rank):
        sizes = {shape[dim] for shape in shapes}
        if dim in special:
            builder.add_factor_all(dim, min(sizes), kind=kind)
            continue
        if len(sizes) > 1:
            raise unfit(op, "along", f"needs tensors of one size in dimension {dim}", hint=f"name {dim} among the dims")
        builder.add_factor_all(dim, sizes.pop())
    return builder.build()


def concatenate(op: HasShardableValues, dim: int) -> OpShardingRule | None:
    """Return the rule of an op that joins its operands along a dimension, which must be replicated.

    Args:
        op: The op, with one result.
        dim: The dimension; a negative one counts from the end.

    Raises:
        RuleError: the sizes do not add up, or differ in other dimensions.
    """
    if not is_static(op):
        return None
    _, out = first_shapes(op, "concatenate")
    dims = dims_of(op, "concatenate", dim, len(out))
    if len(dims) != 1:
        raise unfit(op, "concatenate", "needs one dimension")
    joined = dims[0]
    shapes = operand_shapes(op)
    fits = all(len(shape) == len(out) for shape in shapes)
    if not fits or sum(shape[joined] for shape in shapes) != out[joined]:
        raise unfit(op, "concatenate", f"needs operands whose sizes in dimension {joined} add up to the result's")
    builder = OpShardingRuleBuilder.for_op(op)
    for number, size in enumerate(out):
        if number != joined and any(shape[number] != size for shape in shapes):
            raise unfit(op, "concatenate", f"needs tensors of one size in dimension {number}")
        builder.add_factor_all(
            number, size, kind=FactorKind.NEED_REPLICATION if number == joined else FactorKind.PASS_THROUGH
        )
    return builder.build()


def generate(op: HasShardableValues) -> OpShardingRule | None:
    """Return the rule of an op whose results may be sharded in any way, such as random numbers or a counter.

    Results of one shape are sharded alike. The operands (a seed, bounds) have no part: what they have of dimensions
    must be whole.

    Args:
        op: The op.
    """
    if not is_static(op):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    nowhere: list[None] = [None] * len(op.operands)
    for number, shape in enumerate(operand_shapes(op)):
        for dim, size in enumerate(shape):
            dims: list[int | None] = [*nowhere]
            dims[number] = dim
            builder.add_factor(dims, [None] * len(op.results), size, kind=FactorKind.NEED_REPLICATION)
    outs = result_shapes(op)
    for shape in dict.fromkeys(outs):
        for dim, size in enumerate(shape):
            builder.add_factor(nowhere, [dim if other == shape else None for other in outs], size)
    return builder.build()
