"""Fit of a rule to its op: the invariants of the reference, and the sizes of factors and dimensions.

The reference never compares sizes, as its rules come from its own code. Those of plugins do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

from shardy_py.errors import Diagnostic
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import FactorKind, OpShardingRule, TensorMapping, factor_symbol
from shardy_py.sharding.unknown_size import is_known
from shardy_py.sharding.verify_rule import verify_op_sharding_rule

Shape = tuple[int | None, ...]
"""The sizes of a tensor; () for a scalar and for anything that is not a tensor."""


@lru_cache(maxsize=8192)
def rule_problems(
    rule: OpShardingRule,
    operand_shapes: tuple[Shape, ...],
    result_shapes: tuple[Shape, ...],
    *,
    any_sizes: bool = False,
) -> tuple[Diagnostic, ...]:
    """Return the problems of a rule for an op with the given shapes.

    Besides what `verify_op_sharding_rule` demands, the factors of a dimension must make up its size. Factors that need
    replication, are permuted or blocked may have the size of one of their dimensions only, as that of a slice has; a
    lone factor of size 1 represents a dimension that is not sharded.

    Args:
        rule: The rule.
        operand_shapes: The sizes of each operand.
        result_shapes: The sizes of each result.
        any_sizes: Whether the factors may have other sizes than their dimensions.
    """
    if _is_plain(rule, operand_shapes, result_shapes):
        return ()
    return _all_problems(rule, operand_shapes, result_shapes, any_sizes=any_sizes)


def _all_problems(
    rule: OpShardingRule, operand_shapes: tuple[Shape, ...], result_shapes: tuple[Shape, ...], *, any_sizes: bool
) -> tuple[Diagnostic, ...]:
    shapes = operand_shapes + result_shapes
    malformed = tuple(_malformed(rule))
    if malformed:
        return malformed
    # A rule with nothing on one side of the arrow is not an attribute, but a rule all the same.
    sided = bool(rule.operand_mappings and rule.result_mappings)
    counts = (len(rule.operand_mappings), len(rule.result_mappings)) == (len(operand_shapes), len(result_shapes))
    if sided or not counts:
        problems = verify_op_sharding_rule(rule, operand_shapes, result_shapes)
    else:
        problems = [*_ranks(rule, shapes), *verify_op_sharding_rule(_both_sides(rule))]
    if problems:
        return tuple(problems)
    sizes = () if any_sizes else _size_problems(rule, shapes, len(operand_shapes))
    return (*sizes, *_reduction_problems(rule))


@lru_cache(maxsize=8192)
def written_rule_problems(
    rule: OpShardingRule, operand_shapes: tuple[Shape, ...], result_shapes: tuple[Shape, ...]
) -> tuple[Diagnostic, ...]:
    """Return the problems of a rule that a module has on an op: the reference's invariants, and the reductions.

    The reference takes factors of any size, so that a module that it accepts is accepted.

    Args:
        rule: The rule.
        operand_shapes: The sizes of each operand.
        result_shapes: The sizes of each result.
    """
    counts = (len(rule.operand_mappings), len(rule.result_mappings)) == (len(operand_shapes), len(result_shapes))
    if counts and not rule.may_stand_on_op:
        # No attribute of Shardy's, which has no say in it then.
        return tuple(_ranks(rule, operand_shapes + result_shapes))
    problems = verify_op_sharding_rule(rule, operand_shapes, result_shapes)
    return tuple(problems or _reduction_problems(rule))


def shown_shapes(operand_shapes: Sequence[Shape], result_shapes: Sequence[Shape]) -> str:
    """Return the shapes of an op as errors show them.

    >>> shown_shapes([(8, 4), ()], [(8,)])
    'operands 8x4, scalar; results 8'
    """
    return f"operands {_shown(operand_shapes)}; results {_shown(result_shapes)}"


def _shown(shapes: Sequence[Shape]) -> str:
    return (
        ", ".join("x".join(str(size) if is_known(size) else "?" for size in shape) or "scalar" for shape in shapes)
        or "none"
    )


def _is_plain(rule: OpShardingRule, operand_shapes: tuple[Shape, ...], result_shapes: tuple[Shape, ...]) -> bool:
    """Return whether a rule clearly fits: the factors of each dimension make up its size, and nothing is amiss.

    Most rules are so, and this is much faster than to look for problems.
    """
    sizes = rule.factor_sizes
    if rule.initial_operands or rule.combiners:
        return False
    if len(rule.operand_mappings) != len(operand_shapes) or len(rule.result_mappings) != len(result_shapes):
        return False
    used: set[int] = set()
    for mapping, shape in zip(rule.operand_mappings, operand_shapes, strict=True):
        if not _fill_dims(mapping, shape, sizes, used):
            return False
    in_results: set[int] = set()
    for mapping, shape in zip(rule.result_mappings, result_shapes, strict=True):
        if not _fill_dims(mapping, shape, sizes, in_results):
            return False
    used |= in_results
    # All of them are integers from 0 on if each is used, as the dimensions were looked at.
    if len(used) != len(sizes) or not in_results.isdisjoint(rule.reduction_factors):
        return False
    kinds = (rule.reduction_factors, rule.need_replication_factors, rule.permutation_factors)
    special = (*kinds, rule.blocked_propagation_factors)
    if not any(special):
        return True
    if any(not used.issuperset(factors) or list(factors) != sorted(set(factors)) for factors in special):
        return False
    return len({*kinds[0], *kinds[1], *kinds[2]}) == sum(map(len, kinds))


def _fill_dims(mapping: TensorMapping, shape: Shape, sizes: tuple[int, ...], used: set[int]) -> bool:
    """Return whether the factors of a tensor, each once, make up the sizes of its dimensions; add them to ``used``."""
    if len(mapping) != len(shape):
        return False
    dim_factors: set[int] = set()
    occurrences = 0
    for dim, size in zip(mapping, shape, strict=True):
        product = 1
        for factor in dim:
            if type(factor) is not int or not 0 <= factor < len(sizes):
                return False
            factor_size = sizes[factor]
            if type(factor_size) is not int or (factor_size == 1 and len(dim) > 1):
                return False
            product *= factor_size
            dim_factors.add(factor)
        if product != size or not dim or product < 0:
            return False
        occurrences += len(dim)
    used |= dim_factors
    return len(dim_factors) == occurrences


def _malformed(rule: OpShardingRule) -> Iterator[Diagnostic]:
    """Find values of other types than a rule has, before anything is computed with them."""
    for factor, size in enumerate(rule.factor_sizes):
        if not isinstance(size, int) or isinstance(size, bool):
            message = f"factor {factor_symbol(factor)} has size {size!r}, not an integer"
            yield Diagnostic("factor-size", message, hint="give the size of its dimension")
        elif size < 0:
            message = f"factor {factor_symbol(factor)} has the negative size {size}"
            yield Diagnostic("factor-size", message, hint="give the size of its dimension")
    dims = [factor for mapping in rule.mappings for dim in mapping for factor in dim]
    special = (
        *rule.reduction_factors,
        *rule.need_replication_factors,
        *rule.permutation_factors,
        *rule.blocked_propagation_factors,
    )
    for factor in dict.fromkeys((*dims, *special)):
        if not isinstance(factor, int) or isinstance(factor, bool):
            yield Diagnostic("factor-unknown", f"{factor!r} is not the index of a factor", hint="factors are integers")


def _ranks(rule: OpShardingRule, shapes: Sequence[Shape]) -> Iterator[Diagnostic]:
    for number, (mapping, shape) in enumerate(zip(rule.mappings, shapes, strict=True)):
        if len(mapping) != len(shape):
            message = f"tensor {number} - mapping rank must match: {len(mapping)} != {len(shape)}"
            yield Diagnostic("mapping-rank", message, hint=f"write {len(shape)} dimensions, each with its factors")


def _both_sides(rule: OpShardingRule) -> OpShardingRule:
    """Return a rule in which missing operands or results are replaced by a scalar."""
    scalars = ((),)
    return OpShardingRule(
        rule.factor_sizes,
        rule.operand_mappings or scalars,
        rule.result_mappings or scalars,
        rule.reduction_factors,
        rule.need_replication_factors,
        rule.permutation_factors,
        rule.blocked_propagation_factors,
    )


def _size_problems(rule: OpShardingRule, shapes: Sequence[Shape], num_operands: int) -> Iterator[Diagnostic]:
    sizes = rule.factor_sizes
    loose = {factor for factor in range(rule.num_factors) if _may_differ(rule, factor)}
    unfounded = loose - _factors_with_exact_dims(rule, shapes)
    uses = Counter(factor for mapping in rule.mappings for dim in mapping for factor in dim)
    for number, (mapping, shape) in enumerate(zip(rule.mappings, shapes, strict=True)):
        for index, (dim, size) in enumerate(zip(mapping, shape, strict=True)):
            product = prod(sizes[factor] for factor in dim)
            if not is_known(size) or product == size or (len(dim) == 1 and product == 1 and uses[dim[0]] == 1):
                continue
            if not loose.isdisjoint(dim) and unfounded.isdisjoint(dim):
                continue
            what = f"operand {number}" if number < num_operands else f"result {number - num_operands}"
            shown = " * ".join(f"{factor_symbol(factor)}={sizes[factor]}" for factor in dim)
            message = f"dimension {index} of {what} has size {size}, its factors {shown}"
            yield Diagnostic("factor-size", message, hint=_DIFFERENT)


_DIFFERENT = (
    "give the size of the dimension; only factors that need replication, are permuted or blocked may have another,"
    " that of one of their dimensions"
)


def _may_differ(rule: OpShardingRule, factor: int) -> bool:
    kind = rule.kind(factor)
    return (
        kind is FactorKind.NEED_REPLICATION
        or kind is FactorKind.PERMUTATION
        or factor in rule.blocked_propagation_factors
    )


def _factors_with_exact_dims(rule: OpShardingRule, shapes: Sequence[Shape]) -> set[int]:
    """Return the factors of dimensions whose size their factors make up."""
    return {
        factor
        for mapping, shape in zip(rule.mappings, shapes, strict=True)
        for dim, size in zip(mapping, shape, strict=True)
        if not is_known(size) or prod(rule.factor_sizes[item] for item in dim) == size
        for factor in dim
    }


def _reduction_problems(rule: OpShardingRule) -> Iterator[Diagnostic]:
    named = [factor for factor, _ in rule.combiners]
    for factor, combiner in rule.combiners:
        if not isinstance(combiner, Combiner):
            message = f"factor {factor_symbol(factor)} combines by {combiner!r}, which is not a Combiner"
            yield Diagnostic("unknown-combiner", message, hint="for example Combiner.MAX")
        if factor not in rule.reduction_factors:
            message = f"factor {factor_symbol(factor)} has a combiner, but is not a reduction factor"
            yield Diagnostic("factor-kinds", message, hint="list it among the reduction factors, too")
    if len(set(named)) != len(named) or named != sorted(named):
        yield Diagnostic("factor-order", "combiners must be sorted by factor, each named once")
    count = len(rule.operand_mappings)
    for number in rule.initial_operands:
        if not isinstance(number, int) or not 0 <= number < count:
            message = f"initial operand {number!r} does not exist: there are {count} operands"
            yield Diagnostic("initial-operand", message, hint="operands are numbered from 0")
            continue
        reduced = {factor for dim in rule.operand_mappings[number] for factor in dim}
        for factor in sorted(reduced.intersection(rule.reduction_factors)):
            message = f"operand {number}, from which the reduction starts, has its factor {factor_symbol(factor)}"
            yield Diagnostic("initial-operand", message, hint="a reduction starts from something of the result's shape")
