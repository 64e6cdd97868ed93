"""Comparison of the rule of an op with the one that is expected, with the differences in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.einsum import RuleSpec
from shardy_py.sharding.einsum import rule as parse_spec
from shardy_py.sharding.parse import parse_op_sharding_rule
from shardy_py.sharding.rule import FactorKind, OpShardingRule, TensorMapping, factor_symbol
from shardy_py.sharding.rule_builder import tensor_shape
from shardy_py.support.arguments import checked
from shardy_py.testing.ops import TypeLike, make_op, to_type


def canonical(rule: OpShardingRule) -> OpShardingRule:
    """Return a rule with its factors numbered in the order in which they occur, whoever gave it."""
    order = {f: None for mapping in rule.mappings for dim in mapping for f in dim}
    order.update(dict.fromkeys(range(rule.num_factors)))
    numbers = {factor: number for number, factor in enumerate(order)}

    def mappings(tensor_mappings: Iterable[TensorMapping]) -> tuple[TensorMapping, ...]:
        return tuple(tuple(tuple(numbers[factor] for factor in dim) for dim in mapping) for mapping in tensor_mappings)

    def factors(factor_numbers: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(numbers[factor] for factor in factor_numbers))

    return OpShardingRule(
        tuple(rule.factor_sizes[factor] for factor in order),
        mappings(rule.operand_mappings),
        mappings(rule.result_mappings),
        factors(rule.reduction_factors),
        factors(rule.need_replication_factors),
        factors(rule.permutation_factors),
        factors(rule.blocked_propagation_factors),
        combiners=tuple(sorted(((numbers[factor], combiner) for factor, combiner in rule.combiners), key=_first)),
        initial_operands=rule.initial_operands,
    )


def _first(item: tuple[int, object]) -> int:
    return item[0]


def first_difference(
    expected: OpShardingRule | None, actual: OpShardingRule | None, *, up_to_numbers: bool = False
) -> str:
    """Return the first thing in which two rules differ, in words.

    Args:
        expected: One rule, or none.
        actual: The other.
        up_to_numbers: Whether the numbers of the factors count for nothing.
    """
    if expected is None or actual is None:
        return "there is no rule" if actual is None else "there is a rule"
    if evolve(expected, is_custom=actual.is_custom) == actual:
        return "one counts as given by a user, the other does not"
    left, right = canonical(expected), canonical(actual)
    if left == right:
        return "only the numbers of the factors differ"
    if not up_to_numbers and expected.mappings == actual.mappings:
        left, right = expected, actual
    return next(_differences(left, right))


def places(rule: OpShardingRule, factor: int) -> str:
    """Return the dimensions that have a factor, in words.

    >>> from shardy_py.sharding.parse import parse_op_sharding_rule
    >>> places(parse_op_sharding_rule("<([i], [i])->([i]) {i=2}>"), 0)
    'operand 0 dim 0, operand 1 dim 0, result 0 dim 0'
    """
    return ", ".join(
        f"{side} {number} dim {index}"
        for side, mappings in (("operand", rule.operand_mappings), ("result", rule.result_mappings))
        for number, mapping in enumerate(mappings)
        for index, dim in enumerate(mapping)
        if factor in dim
    )


def _differences(left: OpShardingRule, right: OpShardingRule) -> Iterator[str]:
    sides = (("operand", "operand_mappings"), ("result", "result_mappings"))
    for side, name in sides:
        counts = len(getattr(left, name)), len(getattr(right, name))
        if counts[0] != counts[1]:
            yield f"{counts[0]} {side}s expected, found {counts[1]}"
    for side, name in sides:
        for number, (ours, theirs) in enumerate(zip(getattr(left, name), getattr(right, name), strict=True)):
            yield from _mapping_differences(ours, theirs, f"{side} {number}")
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


Shapes = tuple[tuple[int, ...], ...]
RuleLike = OpShardingRule | RuleSpec | Op | str
"""A rule; a spec made by `shardy_py.rule`; an op; or a text: of a rule (``<...>`` or ``... -> ...``), or an op name."""


@checked
def assert_rule(
    subject: RuleLike,
    expected: OpShardingRule | RuleSpec | str | None,
    operands: Iterable[TypeLike] | None = None,
    results: Iterable[TypeLike] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    *,
    registry: Registry | None = None,
    options: RuleOptions | None = None,
) -> None:
    """Assert that an op has a rule.

    A rule in Shardy's own text, or an `OpShardingRule`, must be found exactly. One that names its factors itself (a
    text like ``i k, k j -> i j``, or a `RuleSpec`) says nothing about their numbers, so they may differ.

    Args:
        subject: An op name, with the next three arguments; an op; or a rule or a spec itself.
        expected: The rule; None where the op is to have none.
        operands: Shapes or types of the operands, see `shardy_py.testing.make_op`. Only with an op name or a spec.
        results: The same of the results.
        attributes: The attributes of the op.
        registry: What is known about the op; by default that of the installed plugins.
        options: What rules depend on besides their op; by default what the registry has.

    Raises:
        AssertionError: the rule is another one; the message shows both, the shapes and the first difference.
        ShardyError: a text is not a valid rule, a rule function fails, or a plugin is broken.

    >>> from shardy_py import rule
    >>> assert_rule(rule("i k, k j -> i j", reduction="k"),
    ...             "<([i, k], [k, j])->([i, j]) {i=8, j=2, k=4} reduction={k}>", [(8, 4), (4, 2)], [(8, 2)])
    Traceback (most recent call last):
    ...
    AssertionError: the rule of 'i k, k j -> i j' is not the expected one
      operands 8x4, 4x2; results 8x2
      expected <([i, k], [k, j])->([i, j]) {i=8, j=2, k=4} reduction={k}>
      found    <([i, j], [j, k])->([i, k]) {i=8, j=4, k=2} reduction={j}>
      first difference: only the numbers of the factors differ
    """
    actual_rule, shapes = resolve_rule(subject, operands, results, attributes, registry=registry, options=options)
    expected_rule = _expected(expected, actual_rule, shapes)
    is_named = not (expected is None or isinstance(expected, OpShardingRule) or _is_rule_text(expected))
    if expected_rule == actual_rule or (
        is_named and expected_rule and actual_rule and canonical(expected_rule) == canonical(actual_rule)
    ):
        return
    lines = [
        f"the rule of {_name(subject)} is not the expected one",
        f"  operands {_shown(shapes[0])}; results {_shown(shapes[1])}" if shapes else "",
        f"  expected {expected_rule or 'no rule'}",
        f"  found    {actual_rule or 'no rule'}",
        f"  first difference: {first_difference(expected_rule, actual_rule, up_to_numbers=is_named)}",
    ]
    raise AssertionError("\n".join(line for line in lines if line))


def resolve_rule(
    subject: RuleLike,
    operands: Iterable[TypeLike] | None = None,
    results: Iterable[TypeLike] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    *,
    registry: Registry | None = None,
    options: RuleOptions | None = None,
) -> tuple[OpShardingRule | None, tuple[Shapes, Shapes] | None]:
    """Return the rule something stands for, and the shapes of operands and results as far as they are known.

    The arguments and errors are those of `assert_rule`.

    Raises:
        OptionError: shapes are missing.
    """
    shapes = None
    if operands is not None and results is not None:
        operands, results = [to_type(item) for item in operands], [to_type(item) for item in results]
        shapes = tuple(map(_shape, operands)), tuple(map(_shape, results))
    if isinstance(subject, OpShardingRule):
        return subject, shapes
    if isinstance(subject, str) and _is_rule_text(subject):
        return parse_op_sharding_rule(subject), shapes
    if not isinstance(subject, Op) and shapes is None:
        raise OptionError(Diagnostic("missing-shapes", f"{_name(subject)} needs the shapes of operands and results"))
    if isinstance(subject, RuleSpec) or (isinstance(subject, str) and "->" in subject):
        spec = subject if isinstance(subject, RuleSpec) else parse_spec(subject)
        return spec.bind(*shapes), shapes  # type: ignore[misc]
    op = subject if isinstance(subject, Op) else make_op(subject, operands or (), results or (), attributes)
    semantics = _semantics(registry, options)
    op_shapes = tuple(map(tensor_shape, op.operands)), tuple(map(tensor_shape, op.results))
    return semantics.get_sharding_rule(op), op_shapes


def with_reductions_of_op(
    rule: OpShardingRule,
    subject: RuleLike,
    operands: Iterable[TypeLike],
    results: Iterable[TypeLike],
    attributes: Mapping[str, Attribute] | None = None,
    *,
    registry: Registry | None = None,
    options: RuleOptions | None = None,
) -> OpShardingRule:
    """Return a rule with what the definition of its op says of reductions beside it.

    The arguments are those of `resolve_rule`. A rule that belongs to no op stays as it is.
    """
    is_name = isinstance(subject, str) and not _is_rule_text(subject) and "->" not in subject
    if not isinstance(subject, Op) and not is_name:
        return rule
    op = subject if isinstance(subject, Op) else make_op(str(subject), operands, results, attributes)
    reductions = _semantics(registry, options).get_reductions(op)
    combiners = {
        factor: combiner for factor, combiner in reductions.combiners.items() if combiner not in (None, Combiner.ADD)
    }
    return evolve(
        rule,
        combiners=tuple(sorted(combiners.items(), key=itemgetter(0))),
        initial_operands=reductions.initial_operands,
    )


def _semantics(registry: Registry | None, options: RuleOptions | None) -> Registry:
    semantics = registry or Registry.from_entry_points(skip_broken=True)
    return semantics if options is None else semantics.with_options(options)


def _expected(expected: Any, actual_rule: OpShardingRule | None, shapes: tuple[Shapes, Shapes] | None) -> Any:
    if expected is None or isinstance(expected, OpShardingRule):
        return expected
    if _is_rule_text(expected):
        return parse_op_sharding_rule(expected)
    spec = parse_spec(expected) if isinstance(expected, str) else expected
    if shapes is None:
        raise OptionError(Diagnostic("missing-shapes", f"{spec.text!r} needs the shapes of operands and results"))
    bound = spec.bind(*shapes)
    return evolve(bound, is_custom=actual_rule.is_custom) if actual_rule else bound


def _is_rule_text(subject: object) -> bool:
    return isinstance(subject, str) and subject.lstrip().startswith("<")


def _name(subject: RuleLike) -> str:
    return repr(subject.name if isinstance(subject, Op) else getattr(subject, "text", str(subject)))


def _shape(type_: Any) -> tuple[int, ...]:
    return tuple(getattr(type_, "shape", ()))


def _shown(shapes: Shapes) -> str:
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes) or "none"
