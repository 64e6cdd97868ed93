"""The numeric check of a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, OptionError, RuleError
from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.verify_rule import verify_op_sharding_rule
from shardy_py.support.arguments import checked
from shardy_py.testing.numeric.bench import Arrays, Bench, NumericTrial, call, takes_local
from shardy_py.testing.numeric.factors import find_missing, judge
from shardy_py.testing.numeric.operands import make_generator, make_operand
from shardy_py.testing.numeric.pieces import Sizes, make_local, pieces_of
from shardy_py.testing.numeric.report import RuleReport
from shardy_py.testing.ops import TypeLike, to_type
from shardy_py.testing.rules import RuleLike, resolve_rule, with_reductions_of_op


@checked
def check_rule_numerically(
    subject: RuleLike,
    function: Callable[..., Any],
    operands: Iterable[Any] | None = None,
    results: Iterable[TypeLike] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    *,
    combine: Callable[[Any, Any], Any] | None = None,
    registry: Registry | None = None,
    options: RuleOptions | None = None,
    trials: int = 2,
    seed: int = 0,
    rtol: float | None = None,
) -> RuleReport:
    """Compare an op on shards with the shards of the op, for each factor of its rule by itself.

    Along a pass-through factor, every device runs the function on its shards of the operands that have the factor
    (and on the others whole) and must get its shard of each result that has it, and the others whole. Along a
    reduction, the results of the devices must combine to the whole, as the rule says; operands that a reduction starts
    from are on the first device only, the others have what changes nothing. A factor that needs replication or is
    permuted is gathered before the op, so nothing is claimed that could be wrong; nor of a factor that only results
    have, as every device has all operands. Dimensions are split into as few and into as many equal parts as possible,
    and into two uneven ones; compound dimensions as their factors say. Then the dimensions that no factor explains are
    tried in all combinations: those that work are missing.

    Args:
        subject: A rule, a spec, a text of either, an op or an op name; see `shardy_py.testing.assert_rule`.
        function: What the op computes: takes one array per operand, returns an array, or a tuple of several. If it has
            a parameter named ``local``, it gets what its device holds, see `Local`; then ``results`` is needed.
        operands: One shape, type or array per operand. Those of an op are known; shapes are of ``f32``, and random
            numbers of both signs are made for them.
        results: Shapes or types of the results; by default what the function returns for whole operands.
        attributes: The attributes of the op, with an op name.
        combine: Makes one of what the function returns on two devices along a reduction; by default as the rule says,
            with a sum where it says nothing.
        registry: What is known about the op; by default that of the installed plugins.
        options: What rules depend on besides their op.
        trials: How many sets of random operands to try.
        seed: Where the random numbers start.
        rtol: How far elements may differ, relative to the largest one of the tensor; by default 1e-8 for doubles and
            1e-4 for 32 bits.

    Returns:
        What was found about each factor, and what is missing.

    Raises:
        OptionError: shapes are missing, the op has no rule, or there are no random numbers of a type.
        RuleError: the rule does not fit the shapes.
    """
    operand_specs = _operands(subject, operands)
    sizes = _result_types(subject, results)
    runs = tuple(_trial(function, operand_specs, sizes, seed + number) for number in range(max(trials, 1)))
    rule = _rule(subject, runs[0], operand_specs, sizes, attributes, registry, options)
    shapes = tuple(tuple(array.shape) for array in runs[0].operands + runs[0].results)
    count = len(runs[0].operands)
    _verify(rule, shapes[:count], shapes[count:])
    types = sizes if sizes is not None else list(runs[0].results)
    known = with_reductions_of_op(rule, subject, operand_specs, types, attributes, registry=registry, options=options)
    bench = Bench(function, combine, runs, shapes, rtol, known.initial_operands)
    pieces = pieces_of(rule, shapes)
    checks = tuple(judge(bench, known, pieces, factor) for factor in range(rule.num_factors))
    search = find_missing(bench, rule, pieces, checks)
    return RuleReport(rule, shapes[:count], shapes[count:], checks, search.missing, search.is_complete)


def assert_rule_holds(
    subject: RuleLike,
    function: Callable[..., Any],
    operands: Iterable[Any] | None = None,
    results: Iterable[TypeLike] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    *,
    allow_missing: bool = False,
    **settings: Any,
) -> RuleReport:
    """Assert that `check_rule_numerically` finds no wrong factor and no missing one.

    Args:
        subject: A rule, a spec, a text of either, an op or an op name, as for `check_rule_numerically`.
        function: The function of the op on arrays.
        operands: One shape, type or array per operand.
        results: Shapes or types of the results.
        attributes: The attributes of the op.
        allow_missing: Whether factors may be missing: such a rule is right, but shards less than it could.
        settings: The settings of the check.

    Returns:
        The report.

    Raises:
        AssertionError: the message is the report's text: which factor is wrong on which shard, and what is missing.
    """
    report = check_rule_numerically(subject, function, operands, results, attributes, **settings)
    if report.wrong or (report.missing and not allow_missing):
        raise AssertionError(str(report))
    return report


def _operands(subject: RuleLike, operands: Iterable[Any] | None) -> list[Any]:
    if operands is not None:
        return list(operands)
    if isinstance(subject, Op):
        return [value.type for value in subject.operands]
    raise OptionError(Diagnostic("missing-shapes", "the check needs the shapes of the operands"))


def _result_types(subject: RuleLike, results: Iterable[TypeLike] | None) -> list[Any] | None:
    if results is not None:
        return [to_type(item) for item in results]
    return [value.type for value in subject.results] if isinstance(subject, Op) else None


def _trial(
    function: Callable[..., Any], operand_specs: Sequence[Any], results: list[Any] | None, seed: int
) -> NumericTrial:
    generator = make_generator(seed)
    operands = tuple(make_operand(item, generator) for item in operand_specs)
    local = None
    if takes_local(function):
        if results is None:
            message = "a function with the parameter 'local' needs the shapes of the results"
            raise OptionError(Diagnostic("missing-shapes", message, hint="give results=[...]"))
        shapes = [*(array.shape for array in operands), *(tuple(getattr(item, "shape", ())) for item in results)]
        local = make_local(shapes, len(operands))
    return NumericTrial(operands, call(function, operands, local))


def _rule(
    subject: RuleLike,
    run: NumericTrial,
    operand_specs: Sequence[Any],
    results: list[Any] | None,
    attributes: Mapping[str, Attribute] | None,
    registry: Registry | None,
    options: RuleOptions | None,
) -> OpShardingRule:
    types = results if results is not None else list(run.results)
    operands: Arrays | Sequence[Any] = operand_specs
    rule, _ = resolve_rule(subject, operands, types, attributes, registry=registry, options=options)
    if rule is None:
        hint = "registry=... says which dialects are known; by default those of the installed plugins are"
        raise OptionError(
            Diagnostic("no-rule", "the op has no sharding rule to check", op=_op_name(subject), hint=hint)
        )
    return evolve(rule, is_custom=False)


def _verify(rule: OpShardingRule, operands: tuple[Sizes, ...], results: tuple[Sizes, ...]) -> None:
    counts = len(rule.operand_mappings), len(rule.result_mappings)
    if 0 in counts and counts == (len(operands), len(results)):
        # A rule without operands or results is not a valid attribute, but it is a rule.
        return
    problems = verify_op_sharding_rule(rule, operands, results)
    if problems:
        raise RuleError(*problems)


def _op_name(subject: RuleLike) -> str:
    return subject.name if isinstance(subject, Op) else str(subject)
