"""Comparing the rule of an op with the one that is expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import tensor_shape
from shardy_py.support.arguments import checked
from shardy_py.testing.ops import TypeLike, make_op, to_type
from shardy_py.testing.rule_differences import canonical, first_difference

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
        registry: Who knows the op; by default the installed plugins.
        options: What rules depend on besides their op; by default what the registry has.

    Raises:
        AssertionError: the rule is another one; the message shows both, the shapes and the first difference.
        ShardyError: a text is no rule, a rule function fails, or a plugin is broken.

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
    found, shapes = resolve_rule(subject, operands, results, attributes, registry=registry, options=options)
    wanted = _expected(expected, found, shapes)
    is_named = not (expected is None or isinstance(expected, OpShardingRule) or _is_rule_text(expected))
    if wanted == found or (is_named and wanted and found and canonical(wanted) == canonical(found)):
        return
    lines = [
        f"the rule of {_name(subject)} is not the expected one",
        f"  operands {_shown(shapes[0])}; results {_shown(shapes[1])}" if shapes else "",
        f"  expected {wanted or 'no rule'}",
        f"  found    {found or 'no rule'}",
        f"  first difference: {first_difference(wanted, found, up_to_numbers=is_named)}",
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
    found = _semantics(registry, options).get_reductions(op)
    combiners = {factor: own for factor, own in found.combiners.items() if own not in (None, Combiner.ADD)}
    return evolve(
        rule, combiners=tuple(sorted(combiners.items(), key=itemgetter(0))), initial_operands=found.initial_operands
    )


def _semantics(registry: Registry | None, options: RuleOptions | None) -> Registry:
    semantics = registry or Registry.from_entry_points(skip_broken=True)
    return semantics if options is None else semantics.with_options(options)


def _expected(expected: Any, found: OpShardingRule | None, shapes: tuple[Shapes, Shapes] | None) -> Any:
    if expected is None or isinstance(expected, OpShardingRule):
        return expected
    if _is_rule_text(expected):
        return parse_op_sharding_rule(expected)
    spec = parse_spec(expected) if isinstance(expected, str) else expected
    if shapes is None:
        raise OptionError(Diagnostic("missing-shapes", f"{spec.text!r} needs the shapes of operands and results"))
    bound = spec.bind(*shapes)
    return evolve(bound, is_custom=found.is_custom) if found else bound


def _is_rule_text(given: object) -> bool:
    return isinstance(given, str) and given.lstrip().startswith("<")


def _name(subject: RuleLike) -> str:
    return repr(subject.name if isinstance(subject, Op) else getattr(subject, "text", str(subject)))


def _shape(type_: Any) -> tuple[int, ...]:
    return tuple(getattr(type_, "shape", ()))


def _shown(shapes: Shapes) -> str:
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes) or "none"
