"""The rule of sums of products that an equation in numpy's notation says."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import chain

from shardy_py.sharding.rule import FactorKind, OpShardingRule
from shardy_py.sharding.rule_builder import HasShardableValues, OpShardingRuleBuilder
from shardy_py.sharding.rules.checks import is_static, operand_shapes, result_shapes, unfit


def einsum(op: HasShardableValues, equation: str) -> OpShardingRule | None:
    """Return the rule of an op that sums products as an equation in numpy's notation says, such as ``bij,bjk->bik``.

    Each letter is a factor, in the order in which the operands have them, and is summed over where the result lacks it.
    Dots stand for any number of dimensions, counted from the last one. An operand is repeated along dimensions in which
    it has size 1. Without an arrow, the result has the letters that occur once.

    Args:
        op: The op, with one result.
        equation: The equation.

    Returns:
        The rule; None for an op with an unknown size, or with a diagonal: a letter twice in one tensor.

    Raises:
        RuleError: the equation has other tensors, or tensors of other ranks.
    """
    if not is_static(op):
        return None
    terms, result = _split(equation)
    shapes, outs = operand_shapes(op), result_shapes(op)
    if len(terms) != len(shapes) or len(outs) != 1:
        raise unfit(op, "einsum", f"needs one term for each operand, and one for the result: {equation!r}")
    ins = [_labels(op, term, len(shape)) for term, shape in zip(terms, shapes, strict=True)]
    kept = _labels(op, result, len(outs[0]))
    if any(len({*labels}) != len(labels) for labels in (*ins, kept)):
        return None
    builder = OpShardingRuleBuilder.for_op(op)
    for label in dict.fromkeys(chain(*ins)):
        dims = {number: labels.index(label) for number, labels in enumerate(ins) if label in labels}
        size = max(shapes[number][dim] for number, dim in dims.items())
        wide = {number: dim for number, dim in dims.items() if shapes[number][dim] == size}
        out = {0: kept.index(label)} if label in kept else {}
        builder.add_factor(wide, out, size, kind=FactorKind.PASS_THROUGH if out else FactorKind.REDUCTION)
    return builder.build()


def _split(equation: str) -> tuple[list[str], str]:
    """Return the terms of the operands and that of the result."""
    given, arrow, result = equation.replace(" ", "").partition("->")
    if not arrow:
        letters = given.replace(".", "").replace(",", "")
        once = sorted(letter for letter in letters if letters.count(letter) == 1)
        result = "..." * ("..." in given) + "".join(once)
    return given.split(","), result


def _labels(op: HasShardableValues, term: str, rank: int) -> list[Hashable]:
    """Return a label for each dimension of a term; those that dots stand for count from the last one.

    Raises:
        RuleError: the tensor has another rank.
    """
    before, dots, after = term.partition("...")
    count = rank - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise unfit(op, "einsum", f"needs tensors of the ranks of its terms: {term!r} has rank {rank}")
    return [*before, *range(-count, 0), *after]
