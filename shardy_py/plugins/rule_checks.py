"""Check of a rule against its op."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.guards.error_texts import shown
from shardy_py.guards.guard import Guard, InvalidAnswer
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE, with_written_reductions
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.rule_builder import Shape, tensor_shape
from shardy_py.sharding.rule_fit import rule_problems, shown_shapes, written_rule_problems


def checked_rule(guard: Guard, rule: object, op: Op, *, any_sizes: bool) -> OpShardingRule:
    """Return the answer of a rule function, checked against the op.

    Each distinct rule is checked once for the same shapes.

    Args:
        guard: The guard of the function.
        rule: Its answer.
        op: The op.
        any_sizes: Whether the factors may have other sizes than their dimensions.

    Raises:
        RuleError: it does not fit; the error names the op, its shapes and whose rule it is.
    """
    try:
        return _fitting(rule, op, any_sizes=any_sizes)
    except (InvalidAnswer, RuleError) as error:
        raise guard.failure(error, op) from error


def _fitting(rule: object, op: Op, *, any_sizes: bool) -> OpShardingRule:
    if not isinstance(rule, OpShardingRule):
        hint = "return what build() or sdy.rule(...) returns, or None"
        raise InvalidAnswer(f"returned {shown(rule)}, not an OpShardingRule", hint)
    given = (len(rule.operand_mappings), len(rule.result_mappings))
    operands, results = _shapes(op)
    if given != (len(operands), len(results)):
        made = f"made the rule {rule}: the rule has {given[0]} operands and {given[1]} results"
        raise InvalidAnswer(
            f"{made}, the op {len(operands)} and {len(results)}", "give one mapping per operand and per result"
        )
    try:
        problems = rule_problems(rule, operands, results, any_sizes=any_sizes)
    except TypeError as error:
        raise InvalidAnswer(f"made a rule with values of another type than an OpShardingRule has: {error}") from error
    if problems:
        excerpt = f"{rule}\n{shown_shapes(operands, results)}"
        raise RuleError(*(evolve(item, excerpt=item.excerpt or excerpt) for item in problems))
    return rule


def check_written_rule(op: Op, written: object) -> OpShardingRule:
    """Return the rule written on an op, checked as the reference does: such a rule may have any sizes.

    Raises:
        RuleError: it does not fit the op, or is no rule.
    """
    if not isinstance(written, OpShardingRule):
        message = f"{RULE_ATTRIBUTE} holds {shown(written)}, not a sharding rule"
        raise RuleError(Diagnostic("invalid-rule", message, op.location, op.name, "write #sdy.op_sharding_rule<...>"))
    operands, results = _shapes(op)
    rule = with_written_reductions(op, written)
    problems = written_rule_problems(rule, operands, results)
    if problems:
        excerpt = f"{rule}\n{shown_shapes(operands, results)}"
        raise RuleError(*(evolve(item, op=op.name, location=op.location, excerpt=excerpt) for item in problems))
    return rule


def as_combiner(answer: Any, op: Op) -> Combiner | None:
    """Return the combiner that a plugin gives for the reductions of an op.

    Raises:
        Unfit: it is neither a combiner nor None.
    """
    if answer is not None and not isinstance(answer, Combiner):
        raise InvalidAnswer(
            f"returned {shown(answer)}, which is no Combiner", "for example Combiner.MAX, or None for not"
        )
    return answer


def as_operand_numbers(answer: Any, op: Op) -> tuple[int, ...]:
    """Return the numbers of operands, sorted.

    Raises:
        Unfit: they are none of the op's.
    """
    numbers = tuple(sorted(answer)) if isinstance(answer, (tuple, list, set, frozenset, range)) else (None,)
    if not all(type(number) is int and 0 <= number < len(op.operands) for number in numbers):
        raise InvalidAnswer(
            f"returned {shown(answer)}, not numbers of operands", f"the op has {len(op.operands)}, from 0 on"
        )
    return numbers


def _shapes(op: Op) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    return tuple([tensor_shape(value) for value in op.operands]), tuple([tensor_shape(value) for value in op.results])
