"""Traits, rules and reductions of the ops of one program: each distinct op is looked up once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from attrs import evolve

from shardy_py.errors import RuleError, ShardyError
from shardy_py.guards.error_texts import describe_error, location_of
from shardy_py.guards.guard import Guard
from shardy_py.ir.graph.attributes import freeze, shared_key, shared_look
from shardy_py.ir.graph.dynamic_sizes import has_dynamic_size
from shardy_py.ir.graph.kinds import SharedOpKind, identity_key, kind_of
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.rule_attributes import RULE_ATTRIBUTE
from shardy_py.ir.graph.types import Type
from shardy_py.ir.interfaces.ops import OpFacts, RuleOptions, Trait
from shardy_py.plugins.guarded_interfaces import op_fingerprint
from shardy_py.plugins.resolved_definitions import ResolvedDefinition, ResolvedDefinitions
from shardy_py.plugins.rule_checks import (
    as_combiner,
    as_operand_numbers,
    check_written_rule,
    checked_rule,
    unmarked_factors,
    warn_at,
)
from shardy_py.plugins.rule_view import OpView, RuleMemory, attributes_look, look_key, reads_problem
from shardy_py.plugins.type_definition import TypeDefinition, has_unknown_shape
from shardy_py.sharding.combiner import Combiner
from shardy_py.sharding.einsum.spec import RuleSpec
from shardy_py.sharding.rule import OpShardingRule, Reductions

_CHANGED = "changed its op"
_CHANGED_HINT = "a rule function looks at its op only; a pass may change it"


def make_facts_of(
    all_resolved: ResolvedDefinitions,
    options: RuleOptions,
    types: Mapping[str, TypeDefinition],
    rules: Mapping[int, OpShardingRule],
    memory: RuleMemory,
    token: object,
) -> Callable[[Op], OpFacts]:
    """Return the function that returns the facts of the ops of one program.

    Args:
        all_resolved: The definitions.
        options: The options of rule functions.
        types: The definitions of types.
        rules: Op id to the rule that propagation left on it.
        memory: What is known of ops of other programs.
        token: Stands for the registry where kinds keep facts, maybe from run to run.
    """
    # With the types in the keys, which stay alive with an entry, or others could get their identities.
    memo: dict[Any, tuple[OpFacts, Sequence[Type]]] = {}
    # The keys of attributes without a rule.
    bare: set[Any] = set()
    # The looks of attributes by their keys.
    looks: dict[Any, Hashable | None] = {}

    def facts_of_kind(kind: SharedOpKind, op: Op) -> OpFacts | None:
        """Return the facts of a kind, None where its ops differ: in their rules, or in what these read around them."""
        facts: OpFacts | None = None
        resolved = all_resolved[kind.name]
        if not (resolved.variants or resolved.predicates or resolved.contextual or resolved.context_of is not None):
            if resolved.is_plain:
                facts, _ = recalled(op, kind.name, resolved, resolved.traits, shared_key(op.attributes))
            else:
                facts = facts_of_any(op)
        kind.known = token, facts
        return facts

    def recalled(
        op: Op, kind: Hashable, resolved: ResolvedDefinition, traits: frozenset[Trait], attributes_key: object
    ) -> tuple[OpFacts, Sequence[Type]]:
        value_types = [value.type for value in (*op.operands, *op.results)]
        if attributes_key is None or attributes_key not in looks:
            looks[attributes_key] = shared_look(attributes_key) or attributes_look(op.attributes)
        key = look_key(kind, looks[attributes_key], len(op.operands), value_types)
        known = None if key is None else memory.get(key)
        if known is None:
            known = OpFacts(traits, make_rule(op, resolved, options, types))
            if key is not None:
                known = memory.keep(key, known)
        return known, value_types

    def facts_of_op(op: Op) -> OpFacts:
        kind = None if rules else kind_of(op)
        if kind is None:
            return facts_of_any(op)
        owner, facts = kind.known
        if owner is not token:
            facts = facts_of_kind(kind, op)
        return facts_of_any(op) if facts is None else facts

    def facts_of_any(op: Op) -> OpFacts:
        key: Hashable
        name, attributes, operands = op.name, op.attributes, op.operands
        resolved = all_resolved[name]
        if resolved.variants:
            resolved = resolved.variant_of(op)
        attributes_key = shared_key(attributes)
        if resolved.is_plain and attributes_key is not None and not rules:
            # This is nearly every op; the rest of the function does the same with more questions.
            key = identity_key(attributes_key, name, operands, op.results)
            known = memo.get(key)
            if known is None:
                known = memo[key] = recalled(op, name, resolved, resolved.traits, attributes_key)
            return known[0]
        traits = resolved.traits_of(op) if resolved.predicates else resolved.traits
        if rules and op.id in rules:
            return OpFacts(traits, rules[op.id])
        if resolved.contextual:
            rule = make_rule(op, resolved, options, types)
            # One object for equal facts, so that what is known of their rule is found again.
            return memory.keep((traits, rule), OpFacts(traits, rule))
        if resolved.rule is None and (attributes_key in bare or RULE_ATTRIBUTE not in attributes):
            if attributes_key is not None:
                bare.add(attributes_key)
            return OpFacts(traits, None) if resolved.predicates else resolved.facts
        kind: Hashable = name
        if resolved.predicates or resolved.context_of is not None:
            kind = (name, traits, None if resolved.context_of is None else resolved.context_of(op))
        if attributes_key is not None:
            key = identity_key(attributes_key, kind, operands, op.results)
        else:
            value_types = [value.type for value in (*operands, *op.results)]
            key = (kind, freeze(attributes), len(operands), *value_types)
        known = memo.get(key)
        if known is None:
            known = memo[key] = recalled(op, kind, resolved, traits, attributes_key)
        return known[0]

    return facts_of_op


def make_rule(
    op: Op, resolved: ResolvedDefinition, options: RuleOptions, types: Mapping[str, TypeDefinition]
) -> OpShardingRule | None:
    """Return the rule written on an op, else the rule of its definition, or None.

    Raises:
        RuleError: the plugin's function fails or returns a rule that does not fit the op.
    """
    written = op.attributes.get(RULE_ATTRIBUTE)
    if written is not None:
        return check_written_rule(op, written)
    if resolved.rule is None:
        return None
    try:
        return _call_rule_function(op, resolved, options)
    except RuleError:
        if has_unknown_shape(op, types):
            # No function can do better; that the shape is missing is reported where the program is read.
            return None
        raise


def _call_rule_function(op: Op, resolved: ResolvedDefinition, options: RuleOptions) -> OpShardingRule | None:
    guard = resolved.rule_guard
    if not resolved.contextual and resolved.context_of is None and has_dynamic_size(op):
        # A view of the view: what it shows is static.
        op = OpView(op, stand_ins=True)
    if isinstance(resolved.rule, RuleSpec):
        rule = guard.call(op)
    elif resolved.contextual or resolved.context_of is not None:
        rule = _call_contextual(op, resolved, options)
    else:
        rule = _call_on_view(op, resolved, options)
    if isinstance(rule, RuleSpec):
        if resolved.rule is not rule:
            location = location_of(guard.function)
            warn_at(unmarked_factors(rule, op.name, guard.owner, location), guard.function)
        rule = evolve(guard, function=rule).call(op)
    if rule is None:
        return None
    try:
        return checked_rule(guard, rule, op, any_sizes=resolved.any_sizes)
    except ShardyError:
        raise
    except Exception as error:
        # The parts of a rule that is made by hand can be anything.
        message = f"made a rule that cannot be checked: {describe_error(error)}"
        raise guard.refusal(message, op, hint="use sdy.rule(...) or the builder") from error


def _call_contextual(op: Op, resolved: ResolvedDefinition, options: RuleOptions) -> Any:
    """Call a rule function that may read the context of its op."""
    guard = resolved.rule_guard
    before, values = op_fingerprint(op), (*op.operands, *op.results)
    types = [value.type for value in values]
    rule = guard.call(op, options) if resolved.takes_options else guard.call(op)
    if op_fingerprint(op) != before or [value.type for value in values] != types:
        op.name, op.operands, op.results, op.regions = before[:4]
        for value, type_ in zip(values, types, strict=True):
            value.type = type_
        raise guard.refusal(_CHANGED, op, hint=_CHANGED_HINT)
    return rule


def _call_on_view(op: Op, resolved: ResolvedDefinition, options: RuleOptions) -> Any:
    """Call a rule function on a view of the op, as equal ops share its rule."""
    guard, view = resolved.rule_guard, OpView(op)
    rule = guard.call(view, options) if resolved.takes_options else guard.call(view)
    if view.reads:
        # The function caught the error.
        raise guard.failure(RuleError(reads_problem(view.reads[0])), op)
    if view.is_changed:
        raise guard.refusal(_CHANGED, op, hint=_CHANGED_HINT)
    return rule


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
    combiner: Combiner | None = guard.call(op, check=as_combiner)
    return combiner


def _guard(resolved: ResolvedDefinition, function: Any, role: str) -> Guard:
    return Guard(function, role, resolved.owner, RuleError, "rule-failed", resolved.location)
