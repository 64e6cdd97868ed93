"""The rules that propagation leaves on ops: in a table of the program, and in attributes where somebody looks."""

from __future__ import annotations

from shardy_py.ir.finding import all_ops
from shardy_py.ir.graph import Op, Program
from shardy_py.sharding.rule import OpShardingRule

RULE_ATTRIBUTE = "sdy.sharding_rule"


def keep_rule(op: Op, rule: OpShardingRule) -> None:
    """Leave a rule on an op, unless it is one that Shardy has no way to write on it."""
    if rule.may_stand_on_op:
        op.program.rules[op.id] = rule


def hand_over_rule(op: Op, successor: Op) -> None:
    """Leave the rule that was left on an op on its copy, or what takes its place, too."""
    rule = op.program.rules.get(op.id)
    if rule is not None:
        op.program.rules[successor.id] = rule


def store_rules(program: Program) -> None:
    """Write the rules of the table to the attributes of their ops, but for those with a rule that somebody wrote."""
    if not program.rules:
        return
    for op in all_ops(program):
        rule = program.rules.get(op.id)
        if rule is not None and RULE_ATTRIBUTE not in op.attributes:
            op.attributes[RULE_ATTRIBUTE] = rule
    program.rules.clear()


def drop_rules(program: Program) -> None:
    """Take all rules from the ops but those the user wrote, which are marked as custom."""
    for op_id in [op_id for op_id, rule in program.rules.items() if not rule.is_custom]:
        del program.rules[op_id]
    # Ops share their attributes, and hardly any holds a rule.
    without: set[object] = set()
    for op in all_ops(program):
        attributes = op.attributes
        shared = getattr(attributes, "key", None)
        if shared in without:
            continue
        rule = attributes.get(RULE_ATTRIBUTE)
        if isinstance(rule, OpShardingRule) and not rule.is_custom:
            del attributes[RULE_ATTRIBUTE]
        elif shared is not None:
            without.add(shared)
