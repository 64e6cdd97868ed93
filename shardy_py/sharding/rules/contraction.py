"""Rules of ops that combine elements along dimensions: products of matrices, and reductions."""

from __future__ import annotations

from collections.abc import Iterable

from shardy_py.sharding.combiner import Combiner, parse_combiner
from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import HasShardableValues, OpShardingRuleBuilder, tensor_shape
from shardy_py.sharding.rules.checks import dims_of, is_static, numbers_of, operand_shapes, result_shapes, unfit

Pair = tuple[Iterable[int], Iterable[int]]
"""Dimensions of the left side, and those of the right side that they meet."""


def contraction(
    op: HasShardableValues, *, contracting: Pair, batching: Pair = ((), ()), combiner: Combiner | str = Combiner.ADD
) -> OpShardingRule | None:
    """Return the rule of a product of two tensors that is summed over some dimensions.

    The dimensions of the result are the batching ones, then those that only the left side has, then those that only
    the right side has. Other operands have no part.

    Args:
        op: The op.
        contracting: The dimensions that are summed over: of the left, and of the right side.
        batching: The dimensions along which products are taken one by one.
        combiner: How partial results combine, for products other than the usual one.

    Returns:
        The rule; None for an op with an unknown size.

    Raises:
        RuleError: the dimensions do not meet, or do not make the result's.
    """
    if not is_static(op):
        return None
    if len(op.operands) < 2 or not op.results:
        raise unfit(op, "contraction", "needs two operands and a result")
    lhs, rhs = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    batches, sums = _pairs(op, batching), _pairs(op, contracting)
    out = [lhs[left] for left, _ in batches]
    out += [size for dim, size in enumerate(lhs) if dim not in {left for left, _ in (*batches, *sums)}]
    out += [size for dim, size in enumerate(rhs) if dim not in {right for _, right in (*batches, *sums)}]
    if any(shape != tuple(out) for shape in result_shapes(op)):
        shown = "x".join(map(str, out)) or "a scalar"
        raise unfit(op, "contraction", f"makes {shown} of these operands", hint="give contracting= and batching=")
    return contraction_rule(op, batches, sums, combiner=combiner)


def _pairs(op: HasShardableValues, dims: Iterable[Iterable[int]]) -> list[tuple[int, int]]:
    """Return pairs of dimensions that meet."""
    shapes = operand_shapes(op)[:2]
    dims = tuple(dims) if isinstance(dims, Iterable) else ()
    if not dims or not all(isinstance(side, Iterable) for side in dims):
        hint = "for example contracting=([1], [0])"
        raise unfit(op, "contraction", "needs dimensions of the left side and of the right side", hint=hint)
    sides = [list(side) for side in dims]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        raise unfit(op, "contraction", "needs as many dimensions of the left side as of the right side")
    for side, shape in zip(sides, shapes, strict=True):
        dims_of(op, "contraction", side, len(shape))
    pairs = [(left % len(shapes[0]), right % len(shapes[1])) for left, right in zip(*sides, strict=True)]
    for left, right in pairs:
        if shapes[0][left] != shapes[1][right]:
            message = f"needs equal sizes: dimension {left} of the left side meets {right} of the right side"
            raise unfit(op, "contraction", message)
    return pairs


def contraction_rule(
    op: HasShardableValues,
    batching: Iterable[tuple[int, int]],
    contracting: Iterable[tuple[int, int]],
    *,
    combiner: Combiner | str = Combiner.ADD,
) -> OpShardingRule:
    """Give factors to the batching, the free left, the free right and the contracting dimensions, in this order.

    Args:
        op: The op.
        batching: Pairs of dimensions, of the left and the right side.
        contracting: Pairs of dimensions as well.
        combiner: How partial results combine.
    """
    batching, contracting = list(batching), list(contracting)
    lhs, rhs = tensor_shape(op.operands[0]), tensor_shape(op.operands[1])
    others: list[int | None] = [None] * (len(op.operands) - 2)
    count = len(op.results)
    builder = OpShardingRuleBuilder.for_op(op)
    out_dim = 0
    for left, right in batching:
        builder.add_factor([left, right, *others], [out_dim] * count, lhs[left])
        out_dim += 1
    taken_left, taken_right = ({pair[side] for pair in (*batching, *contracting)} for side in (0, 1))
    for dim, size in enumerate(lhs):
        if dim not in taken_left:
            builder.add_factor([dim, None, *others], [out_dim] * count, size)
            out_dim += 1
    for dim, size in enumerate(rhs):
        if dim not in taken_right:
            builder.add_factor([None, dim, *others], [out_dim] * count, size)
            out_dim += 1
    for left, right in contracting:
        builder.add_factor(
            [left, right, *others], [None] * count, lhs[left], kind=FactorKind.REDUCTION, combiner=combiner
        )
    return builder.build()


def reduction(
    op: HasShardableValues,
    dims: int | Iterable[int],
    combiner: Combiner | str = Combiner.ADD,
    *,
    initial: int | Iterable[int] = (),
) -> OpShardingRule | None:
    """Return the rule of an op that combines the elements along dimensions of its inputs.

    Inputs are the operands of the shape of the first one. The results lack the dimensions, or keep them with size 1.

    Args:
        op: The op.
        dims: The dimensions; negative ones count from the end.
        combiner: How partial results combine: ``add``, ``mul``, ``min``, ``max``, ``and``, ``or``; or ``not`` where
            they cannot be combined, as those of a median or of the position of the largest element.
        initial: The numbers of the operands that the reduction starts from, of the shape of the results or scalars.

    Returns:
        The rule; None for an op with an unknown size.

    Raises:
        RuleError: a tensor has another shape.
    """
    if not is_static(op):
        return None
    if not op.operands or not op.results:
        raise unfit(op, "reduction", "needs an operand and a result")
    shapes, outs = operand_shapes(op), result_shapes(op)
    inner = shapes[0]
    reduced = dims_of(op, "reduction", dims, len(inner))
    starts = numbers_of(op, "reduction", initial, "numbers of operands as initial=")
    builder = OpShardingRuleBuilder.for_op(op).start_from(*starts)
    removed = tuple(size for dim, size in enumerate(inner) if dim not in reduced)
    kept_shape = tuple(1 if dim in reduced else size for dim, size in enumerate(inner))
    for number, shape in enumerate((*shapes, *outs)):
        is_operand = number < len(shapes)
        expected = (inner,) if is_operand and number not in starts else (removed, kept_shape)
        if shape not in expected and (shape or not is_operand):
            what = f"operand {number}" if is_operand else f"result {number - len(shapes)}"
            raise unfit(op, "reduction", f"cannot tell what {what} is", hint="write the rule as a text")
    inputs = [number not in starts and shape == inner for number, shape in enumerate(shapes)]
    parse_combiner(combiner)
    for dim, size in enumerate(inner):
        ins: list[int | None] = [dim if is_input else None for is_input in inputs]
        if dim in reduced:
            builder.add_factor(ins, [None] * len(outs), size, kind=FactorKind.REDUCTION, combiner=combiner)
            continue
        position = dim - sum(other < dim for other in reduced)
        result_dims = [dim if len(shape) == len(inner) else position for shape in outs]
        for number in starts:
            if shapes[number]:
                ins[number] = dim if len(shapes[number]) == len(inner) else position
        builder.add_factor(ins, result_dims, size)
    return builder.build()
