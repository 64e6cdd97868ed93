"""Rules that propagation leaves on ops: in a table of the program, and in attributes once it is written."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from shardy_py.errors import Diagnostic, RuleError
from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import all_ops
from shardy_py.sharding.combiner import Combiner, parse_combiner
from shardy_py.sharding.rule import OpShardingRule, factor_symbol

RULE_ATTRIBUTE = "sdy.sharding_rule"
REDUCTIONS_ATTRIBUTE = "shardy_py.reductions"
"""The combiners of the reduction factors that are not summed, ``{k = "max"}``; Shardy's attribute has no field
for them."""
INITIAL_ATTRIBUTE = "shardy_py.initial_operands"
"""The numbers of the initial operands of the reduction, ``[2]``."""


def write_rule(op: Op, rule: OpShardingRule) -> None:
    """Write a rule to the attributes of its op; fields that Shardy's attribute lacks go to further attributes."""
    op.attributes[RULE_ATTRIBUTE] = rule.without_reductions
    if rule.combiners:
        op.attributes[REDUCTIONS_ATTRIBUTE] = {
            factor_symbol(factor): combiner.value for factor, combiner in rule.combiners
        }
    if rule.initial_operands:
        op.attributes[INITIAL_ATTRIBUTE] = rule.initial_operands


def with_written_reductions(op: Op, rule: OpShardingRule) -> OpShardingRule:
    """Return the rule written on an op, completed from the attributes beside it.

    Raises:
        RuleError: these attributes are not valid.
    """
    words, initial = op.attributes.get(REDUCTIONS_ATTRIBUTE), op.attributes.get(INITIAL_ATTRIBUTE)
    if words is None and initial is None:
        return rule
    factors = {factor_symbol(factor): factor for factor in range(rule.num_factors)}
    combiners: list[tuple[int, Combiner]] = []
    replicated: set[int] = set()
    if words is not None and not isinstance(words, dict):
        _invalid(op, REDUCTIONS_ATTRIBUTE, words)
    for symbol, word in (words or {}).items():
        if factors.get(symbol) not in rule.reduction_factors:
            _invalid(op, REDUCTIONS_ATTRIBUTE, f"{symbol}, which is not a reduction factor of {rule}")
        combiner = parse_combiner(word)
        if combiner is None:
            replicated.add(factors[symbol])
        elif combiner is not Combiner.ADD:
            combiners.append((factors[symbol], combiner))
    return evolve(
        rule,
        reduction_factors=tuple(factor for factor in rule.reduction_factors if factor not in replicated),
        need_replication_factors=tuple(sorted({*rule.need_replication_factors, *replicated})),
        combiners=tuple(sorted(combiners, key=lambda item: item[0])),
        initial_operands=_numbers(op, initial),
    )


def _numbers(op: Op, attribute: Any) -> tuple[int, ...]:
    numbers = attribute.values if isinstance(attribute, DenseElements) else attribute
    if numbers is None:
        return ()
    if not isinstance(numbers, (tuple, list)) or not all(type(number) is int for number in numbers):
        _invalid(op, INITIAL_ATTRIBUTE, attribute)
    return tuple(sorted(numbers))


def _invalid(op: Op, name: str, attribute: object) -> Any:
    hint = '{k = "max"}' if name == REDUCTIONS_ATTRIBUTE else "[2]"
    raise RuleError(
        Diagnostic("invalid-rule", f"{name} holds {attribute}", op.location, op.name, f"for example {hint}")
    )


def keep_rule(op: Op, rule: OpShardingRule) -> None:
    """Record a rule on an op, unless Shardy has no attribute for it."""
    if rule.may_stand_on_op:
        op.program.rules[op.id] = rule


def hand_over_rule(op: Op, successor: Op) -> None:
    """Record the rule of an op on its copy or replacement, too."""
    rule = op.program.rules.get(op.id)
    if rule is not None:
        op.program.rules[successor.id] = rule


def store_rules(program: Program) -> None:
    """Write the rules of the table to the attributes of their ops, except for ops with a written rule."""
    if not program.rules:
        return
    for op in all_ops(program):
        rule = program.rules.get(op.id)
        if rule is not None and RULE_ATTRIBUTE not in op.attributes:
            write_rule(op, rule)
    program.rules.clear()


def drop_rules(program: Program) -> None:
    """Remove all rules but those of the user, which are marked as custom."""
    custom = {op_id: rule for op_id, rule in program.rules.items() if rule.is_custom}
    # A dictionary gives its memory back when it is cleared, not when items are deleted.
    program.rules.clear()
    program.rules.update(custom)
    # Ops share their attributes, and hardly any holds a rule.
    without: set[object] = set()
    for op in all_ops(program):
        attributes = op.attributes
        # As `shared_key`, without a call.
        shared = getattr(attributes, "key", None)
        if shared in without:
            continue
        rule = attributes.get(RULE_ATTRIBUTE)
        if isinstance(rule, OpShardingRule) and not rule.is_custom:
            for name in (RULE_ATTRIBUTE, REDUCTIONS_ATTRIBUTE, INITIAL_ATTRIBUTE):
                if name in attributes:
                    del attributes[name]
        elif shared is not None:
            without.add(shared)
