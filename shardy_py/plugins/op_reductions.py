"""Combiners and initial operands of the reductions of an op, where its rule does not say them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from shardy_py.errors import RuleError
from shardy_py.guards.guard import Guard
from shardy_py.ir.graph.program import Op
from shardy_py.plugins.resolved_definitions import ResolvedDefinition
from shardy_py.plugins.rule_checks import as_combiner, as_operand_numbers
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.reductions import Reductions
from shardy_py.sharding.rule import OpShardingRule


def reductions_of(op: Op, rule: OpShardingRule | None, resolved: ResolvedDefinition) -> Reductions:
    """Return the reductions of an op: those of its rule, completed from its definition.

    Raises:
        RuleError: the plugin's function fails or returns something else.
    """
    if rule is None or not rule.reduction_factors:
        return Reductions()
    counts_padding = "" if resolved.counts_padding is None else resolved.counts_padding(op)
    if rule.is_custom:
        return evolve(Reductions.of_rule(rule), counts_padding=counts_padding)
    combiners: Mapping[int, Combiner | None] = {**rule.reductions}
    initial_operands = rule.initial_operands
    if not rule.combiners and resolved.combiner is not Combiner.ADD:
        combiners = dict.fromkeys(rule.reduction_factors, _combiner(op, resolved))
    if not initial_operands and resolved.initial_of is not None:
        guard = _guard(resolved, resolved.initial_of, "the function that tells the initial operands")
        initial_operands = guard.call(op, check=as_operand_numbers)
    return Reductions(combiners, initial_operands, not resolved.sums_collectives, counts_padding)


def _combiner(op: Op, resolved: ResolvedDefinition) -> Combiner | None:
    if isinstance(resolved.combiner, Combiner):
        return resolved.combiner
    guard = _guard(resolved, resolved.combiner, "the function that tells the combiner")
    found: Combiner | None = guard.call(op, check=as_combiner)
    return found


def _guard(resolved: ResolvedDefinition, function: Any, role: str) -> Guard:
    return Guard(function, role, resolved.owner, RuleError, "rule-failed", resolved.place)
