"""Rules of ops that give elements another shape or order: reshape and transpose.

The sizes of both shapes of a reshape are split into common factors wherever their products meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import HasShardableValues, OpShardingRuleBuilder, Shape, tensor_shape
from shardy_py.sharding.rules.checks import first_shapes, is_static, order_of, unfit
from shardy_py.sharding.unknown_size import is_known
from shardy_py.values import define


@define
class _Side:
    """The progress of splitting one of the two shapes into factors, major first.

    Attributes:
        shape: The sizes.
        dim: The dimension being split.
        sizes: The product of the sizes up to and with that dimension, once its splitting began.
        factors: The product of the factors so far.
    """

    shape: Shape
    dim: int = 0
    sizes: int = 1
    factors: int = 1

    @property
    def is_done(self) -> bool:
        """True if all dimensions are split."""
        return self.dim >= len(self.shape)

    @property
    def is_at_one(self) -> bool:
        """True if the next dimension has size 1."""
        return not self.is_done and self.shape[self.dim] == 1

    @property
    def rest(self) -> int:
        """The part of the current dimension that is not split yet."""
        return self.sizes // self.factors

    def enter(self) -> None:
        """Begin with the next dimension if the one before is split."""
        if not self.is_done and self.sizes == self.factors:
            self.sizes *= self.shape[self.dim]

    def leave(self) -> None:
        """Go on to the next dimension if this one is split."""
        if not self.is_done and self.sizes == self.factors:
            self.dim += 1

    def catch_up_factor(self, ahead: _Side, common: int) -> int:
        """Return the next factor of this side, which is behind the other one.

        It is what makes both meet if that divides the rest; else what leaves the greatest common divisor for later.
        """
        gap, remainder = divmod(ahead.factors, self.factors)
        if remainder == 0 and self.rest % gap == 0:
            return gap
        return self.rest // common if self.rest > common else self.rest


def reshape(op: HasShardableValues) -> OpShardingRule | None:
    """Return the rule of an op that gives its first operand another shape, in row-major order.

    Both shapes are split into factors, common ones where the products of the sizes meet: joined and split dimensions
    share them. Factors that only one shape has need replication. Other operands, such as a shape, have no part.

    Args:
        op: The op.

    Returns:
        The rule; None for an op with an unknown size, or without elements: there is nothing to shard. None, too, where
        dynamic sizes do not tell which dimensions are joined and split.

    Raises:
        RuleError: the two shapes have different numbers of elements.
    """
    if not is_static(op):
        return None
    in_shape, out_shape = first_shapes(op, "reshape")
    if prod(in_shape) == prod(out_shape):
        return reshape_rule(op, lone=FactorKind.NEED_REPLICATION)
    if all(map(is_known, (*in_shape, *out_shape))):
        raise unfit(op, "reshape", f"needs as many elements before as after: {prod(in_shape)} and {prod(out_shape)}")
    solved = solve_dynamic(in_shape, out_shape)
    return None if solved is None else _rule_of_shapes(op, *solved, FactorKind.NEED_REPLICATION)


def solve_dynamic(in_shape: Shape, out_shape: Shape) -> tuple[Shape, Shape] | None:
    """Return the shapes of a reshape with a dynamic size such that both have as many elements; None where none fits.

    A dynamic size of one shape is the product of what it joins; others are alike in both shapes, at their ends.

    >>> from shardy_py.sharding.unknown_size import STAND_IN_SIZE as U
    >>> solve_dynamic((U, 4, 8), (U, 8)) == ((U, 4, 8), (4 * U, 8))
    True
    """
    shortest = min(len(in_shape), len(out_shape))
    for first in range(shortest + 1):
        for last in range(shortest + 1 - first):
            middle_in, middle_out = in_shape[first : len(in_shape) - last], out_shape[first : len(out_shape) - last]
            head, tail = in_shape[:first], in_shape[len(in_shape) - last :]
            if head != out_shape[:first] or tail != out_shape[len(out_shape) - last :]:
                continue
            new_out, new_in = _enlarged(middle_in, middle_out), _enlarged(middle_out, middle_in)
            if new_out is not None:
                return in_shape, (*head, *new_out, *tail)
            if new_in is not None:
                return (*head, *new_in, *tail), out_shape
    return None


def _enlarged(other: Shape, shape: Shape) -> Shape | None:
    """Return a shape whose only dynamic size is a multiple, so that it has as many elements as another one."""
    if sum(not is_known(size) for size in shape) != 1:
        return None
    factor, remainder = divmod(prod(other), prod(shape)) if prod(shape) else (0, 0)
    return None if remainder or factor < 1 else tuple(size if is_known(size) else factor * size for size in shape)


def reshape_rule(op: HasShardableValues, *, lone: FactorKind = FactorKind.PASS_THROUGH) -> OpShardingRule | None:
    """Return the rule of a reshape whose shapes have been checked.

    Args:
        op: The op.
        lone: The kind of the factors that only one of the two shapes has. The reference lets them pass through.
    """
    return _rule_of_shapes(op, tensor_shape(op.operands[0]), tensor_shape(op.results[0]), lone)


def _rule_of_shapes(
    op: HasShardableValues, in_shape: Shape, out_shape: Shape, lone: FactorKind
) -> OpShardingRule | None:
    if prod(in_shape) == 0:
        return None
    others: list[int | None] = [None] * (len(op.operands) - 1)
    builder = OpShardingRuleBuilder.for_op(op)
    for in_dim, out_dim, size in split_factors(in_shape, out_shape):
        is_shared = in_dim is not None and out_dim is not None
        kind = FactorKind.PASS_THROUGH if is_shared or size == 1 else lone
        builder.add_factor([in_dim, *others], [out_dim], size, kind=kind)
    return builder.build()


def transpose(op: HasShardableValues, permutation: Sequence[int]) -> OpShardingRule | None:
    """Return the rule of an op that puts the dimensions of its operand into another order.

    Args:
        op: The op.
        permutation: For each dimension of the result that of the operand; negative ones count from the end.

    Returns:
        The rule; None for an op with an unknown size.

    Raises:
        RuleError: it is not a permutation, or does not lead to the result.
    """
    if not is_static(op):
        return None
    in_shape, out_shape = first_shapes(op, "transpose")
    order = order_of(op, "transpose", permutation, len(in_shape))
    if tuple(in_shape[dim] for dim in order) != out_shape:
        raise unfit(op, "transpose", f"does not get the result from the permutation {order}")
    return transpose_rule(op, order)


def transpose_rule(op: HasShardableValues, permutation: Sequence[int]) -> OpShardingRule:
    """Return the rule that ties each result dimension to the operand dimension it comes from."""
    shape = tensor_shape(op.operands[0])
    others: list[int | None] = [None] * (len(op.operands) - 1)
    builder = OpShardingRuleBuilder.for_op(op)
    for out_dim, in_dim in enumerate(permutation):
        builder.add_factor([in_dim, *others], [out_dim], shape[in_dim])
    return builder.build()


def split_factors(in_shape: Shape, out_shape: Shape) -> list[tuple[int | None, int | None, int]]:
    """Return (operand dimension, result dimension, size) of each factor of a reshape.

    >>> split_factors((8, 4), (2, 16))
    [(0, 0, 2), (0, 1, 4), (1, 1, 4)]
    """
    source, target = _Side(in_shape), _Side(out_shape)
    factors: list[tuple[int | None, int | None, int]] = []
    while not (source.is_done and target.is_done):
        if source.is_at_one:
            factors.append((source.dim, None, 1))
            source.dim += 1
        elif target.is_at_one:
            factors.append((None, target.dim, 1))
            target.dim += 1
        else:
            source.enter()
            target.enter()
            factors.extend(_next_factors(source, target))
            source.leave()
            target.leave()
    return factors


def _next_factors(source: _Side, target: _Side) -> list[tuple[int | None, int | None, int]]:
    common = gcd(source.rest, target.rest)
    if source.factors == target.factors and common > 1:
        source.factors *= common
        target.factors *= common
        return [(source.dim, target.dim, common)]
    if source.factors == target.factors:
        return [_take_source(source, source.rest), _take_target(target, target.rest)]
    if source.factors < target.factors:
        return [_take_source(source, source.catch_up_factor(target, common))]
    return [_take_target(target, target.catch_up_factor(source, common))]


def _take_source(source: _Side, size: int) -> tuple[int, None, int]:
    source.factors *= size
    return source.dim, None, size


def _take_target(target: _Side, size: int) -> tuple[None, int, int]:
    target.factors *= size
    return None, target.dim, size
