"""In what two sharding rules differ, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import FactorKind, OpShardingRule, TensorMapping, factor_symbol


def canonical(rule: OpShardingRule) -> OpShardingRule:
    """Return a rule with its factors numbered in the order in which they occur, whoever gave it."""
    order = {f: None for mapping in rule.mappings for dim in mapping for f in dim}
    order.update(dict.fromkeys(range(rule.num_factors)))
    numbers = {factor: number for number, factor in enumerate(order)}

    def mappings(given: Iterable[TensorMapping]) -> tuple[TensorMapping, ...]:
        return tuple(tuple(tuple(numbers[factor] for factor in dim) for dim in mapping) for mapping in given)

    def factors(given: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(numbers[factor] for factor in given))

    return OpShardingRule(
        tuple(rule.factor_sizes[factor] for factor in order),
        mappings(rule.operand_mappings),
        mappings(rule.result_mappings),
        factors(rule.reduction_factors),
        factors(rule.need_replication_factors),
        factors(rule.permutation_factors),
        factors(rule.blocked_propagation_factors),
        combiners=tuple(sorted(((numbers[factor], own) for factor, own in rule.combiners), key=_first)),
        initial_operands=rule.initial_operands,
    )


def _first(item: tuple[int, object]) -> int:
    return item[0]


def first_difference(
    expected: OpShardingRule | None, found: OpShardingRule | None, *, up_to_numbers: bool = False
) -> str:
    """Return the first thing in which two rules differ, in words.

    Args:
        expected: One rule, or none.
        found: The other.
        up_to_numbers: Whether the numbers of the factors count for nothing.
    """
    if expected is None or found is None:
        return "there is no rule" if found is None else "there is a rule"
    if evolve(expected, is_custom=found.is_custom) == found:
        return "one counts as given by a user, the other does not"
    left, right = canonical(expected), canonical(found)
    if left == right:
        return "only the numbers of the factors differ"
    if not up_to_numbers and expected.mappings == found.mappings:
        left, right = expected, found
    return next(_differences(left, right))


def places(rule: OpShardingRule, factor: int) -> str:
    """Return the dimensions that have a factor, in words.

    >>> from shardy_py.sharding.parse import parse_op_sharding_rule
    >>> places(parse_op_sharding_rule("<([i], [i])->([i]) {i=2}>"), 0)
    'operand 0 dim 0, operand 1 dim 0, result 0 dim 0'
    """
    return ", ".join(
        f"{what} {number} dim {index}"
        for what, mappings in (("operand", rule.operand_mappings), ("result", rule.result_mappings))
        for number, mapping in enumerate(mappings)
        for index, dim in enumerate(mapping)
        if factor in dim
    )


def _differences(left: OpShardingRule, right: OpShardingRule) -> Iterator[str]:
    sides = (("operand", "operand_mappings"), ("result", "result_mappings"))
    for what, name in sides:
        counts = len(getattr(left, name)), len(getattr(right, name))
        if counts[0] != counts[1]:
            yield f"{counts[0]} {what}s expected, found {counts[1]}"
    for what, name in sides:
        for number, (ours, theirs) in enumerate(zip(getattr(left, name), getattr(right, name), strict=True)):
            yield from _mapping_differences(ours, theirs, f"{what} {number}")
    for factor, (ours, theirs) in enumerate(zip(left.factor_sizes, right.factor_sizes, strict=True)):
        where = f"factor {factor_symbol(factor)} ({places(left, factor)})"
        if ours != theirs:
            yield f"the size of {where}: expected {ours}, found {theirs}"
        kinds = [kind_name(item.kind(factor), item.combiner(factor)) for item in (left, right)]
        if kinds[0] != kinds[1]:
            yield f"the kind of {where}: expected {kinds[0]}, found {kinds[1]}"
        blocked = [factor in item.blocked_propagation_factors for item in (left, right)]
        if blocked[0] != blocked[1]:
            yield f"{where} is {'not ' if blocked[0] else ''}blocked"
    if left.initial_operands != right.initial_operands:
        yield f"initial operands: expected {list(left.initial_operands)}, found {list(right.initial_operands)}"


def _mapping_differences(ours: TensorMapping, theirs: TensorMapping, where: str) -> Iterator[str]:
    if len(ours) != len(theirs):
        yield f"the rank of {where}: expected {len(ours)}, found {len(theirs)}"
        return
    for index, (dim, other) in enumerate(zip(ours, theirs, strict=True)):
        if dim != other:
            yield f"{where} dim {index}: expected {_factors(dim)}, found {_factors(other)}, by order of occurrence"


def _factors(dim: tuple[int, ...]) -> str:
    return "".join(map(factor_symbol, dim))


def kind_name(kind: FactorKind, combiner: Combiner = Combiner.ADD) -> str:
    """Return the kind of a factor as it stands in texts.

    >>> kind_name(FactorKind.PASS_THROUGH), kind_name(FactorKind.REDUCTION, Combiner.MAX)
    ('pass-through', 'reduction by max')
    """
    name = "pass-through" if kind is FactorKind.PASS_THROUGH else kind.value
    return name if kind is not FactorKind.REDUCTION or combiner is Combiner.ADD else f"{name} by {combiner.value}"
