"""The sharding rule of every op of a module, without propagating anything."""

from __future__ import annotations

from typing import Any

from shardy_py.api.registries import load_registry
from shardy_py.api.source import complete_registry, read_program
from shardy_py.api.summary import is_counted
from shardy_py.plugins import Registry, RuleOptions
from shardy_py.plugins.installed import with_framework_dialects
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.support.arguments import checked
from shardy_py.values import frozen


@frozen
class OpRule:
    """One op and its rule.

    Args:
        op: The op name.
        location: Where it stands.
        rule: Its rule, or None.
        data_flow: Whether shardings flow through it along data-flow edges instead.
    """

    op: str
    location: str
    rule: OpShardingRule | None
    data_flow: bool


@checked
def list_rules(module: Any, *, registry: Registry | None = None) -> list[OpRule]:
    """Return the rule of each op that computes something, in program order.

    Args:
        module: As for `propagate`.
        registry: The definitions of ops; by default that of the installed plugins.

    Raises:
        ShardyError: the input is not valid, or a plugin is broken.
    """
    semantics = with_framework_dialects(registry) if registry else load_registry(options=RuleOptions())
    program = read_program(module, semantics)
    semantics = complete_registry(program, semantics)
    give_shapes(program, semantics)
    return [
        OpRule(op.name, op.location, semantics.get_sharding_rule(op), semantics.get_data_flow(op) is not None)
        for op in program.walk()
        if is_counted(op, semantics)
    ]
