"""Checks of the arguments of an op definition, made where it is written and not where it is used."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from shardy_py.errors import did_you_mean
from shardy_py.guards.error_texts import shown
from shardy_py.guards.guard import InvalidAnswer, bounded_list
from shardy_py.ir.interfaces.costs import CostOpInterface
from shardy_py.ir.interfaces.ops import (
    TRAITS,
    MeshReferenceOpInterface,
    ShardableDataFlowOpInterface,
    Trait,
)
from shardy_py.plugins.argument_checks import check_callable, check_methods, methods_of, misspelt_methods, refuse

_NO_TRAITS: frozenset[Trait] = frozenset()
NO_CONDITION: Mapping[str, Any] = MappingProxyType({})
"""The condition of definitions that are about all ops of a name."""
_TRAIT_NAMES = tuple(trait.name for trait in TRAITS)
_DATA_FLOW_NEEDS = ("get_edge_sources", "get_edge_owner_from_target", "get_edge_owner_from_source")


def as_traits(value: Any, *, op: str = "", argument: str = "traits") -> frozenset[Trait]:
    """Return the traits of an argument as a set.

    Raises:
        PluginError: it is not a list, or an item is not a trait.
    """
    if value is _NO_TRAITS or (type(value) in (list, tuple) and not value):
        return _NO_TRAITS
    if isinstance(value, frozenset) and not [item for item in value if not isinstance(item, Trait)]:
        return value
    if isinstance(value, Trait):
        raise refuse("invalid-trait", f"{argument} is the trait {value}, not a list of traits", op, hint=f"[{value}]")
    # Lists first: the question about protocols takes longer than all others.
    if not isinstance(value, (list, tuple)) and (isinstance(value, str) or not isinstance(value, Iterable)):
        hint = _trait_hint(value) if isinstance(value, str) else f"{argument}=[Elementwise]"
        hint = "traits_of=... takes a function of the op" if inspect.isroutine(value) and argument == "traits" else hint
        raise refuse("invalid-trait", f"{argument} is {shown(value)}, not a list of traits", op, hint=hint)
    try:
        traits = bounded_list(value)
    except InvalidAnswer as error:
        raise refuse("invalid-trait", f"{argument} {error.message}", op, hint=error.hint) from None
    for trait in traits:
        if not isinstance(trait, Trait) or not isinstance(trait.name, str):
            raise refuse("invalid-trait", f"{shown(trait)} is not a trait", op, hint=_trait_hint(trait))
    return frozenset(traits)


def _trait_hint(value: Any) -> str:
    use = "use the markers of shardy_py.plugins, for example traits=[Elementwise]"
    if not isinstance(value, str):
        return use
    if value in _TRAIT_NAMES:
        return f"give the marker, not its name: traits=[sdy.{value}]"
    meant = did_you_mean(value, _TRAIT_NAMES)
    return f"{meant} {use}" if meant else use


def check_dialect_name(name: Any) -> None:
    """Check the name of a dialect.

    Raises:
        PluginError: it is not the name of a dialect.
    """
    if not isinstance(name, str) or not name.strip():
        raise refuse("invalid-dialect", f"a dialect has a name, not {shown(name)}", hint='Dialect("toy")')
    if any(map(str.isspace, name)):
        raise refuse("invalid-dialect", f"the name of a dialect has no white space: {shown(name)}")


def check_op_name(name: Any) -> None:
    """Check the name of an op.

    Raises:
        PluginError: it is not the name of an op.
    """
    if isinstance(name, str) and name.split() == [name]:
        return
    if callable(name):
        named = getattr(name, "__name__", "f")
        hint = f'as a decorator it takes the name, too: @dialect.op("dialect.{named}")'
        raise refuse("invalid-op-name", f"an op is registered under its full name, not {shown(name)}", hint=hint)
    if not isinstance(name, str) or not name.strip():
        raise refuse("invalid-op-name", f"an op is registered under its full name, not {shown(name)}")
    if any(map(str.isspace, name)):
        raise refuse("invalid-op-name", f"the name of an op has no white space: {shown(name)}")


def check_contextual(contextual: Any, *, op: str) -> None:
    """Check the argument `contextual`: a bool, or a function that returns the context of a rule.

    Raises:
        PluginError: it is neither true nor false, nor a function of the op.
    """
    if isinstance(contextual, bool):
        return
    if isinstance(contextual, type) or not callable(contextual):
        message = f"contextual is {shown(contextual)}, not True or False, nor a function of the op"
        raise refuse("invalid-definition", message, op, hint="contextual=True")
    check_callable(contextual, op=op, code="invalid-definition", what="contextual", arguments=("op",))


def as_condition(condition: Any) -> Mapping[str, Any]:
    """Return the attributes that ops of a definition must have: name to value, sorted by name.

    Raises:
        PluginError: they are not a mapping from names of attributes to texts, numbers or booleans.
    """
    if condition is NO_CONDITION:
        return NO_CONDITION
    hint = 'for example when={"call_target_name": "rms_norm"}'
    if not isinstance(condition, Mapping):
        raise refuse("invalid-condition", f"when is {shown(condition)}, not a mapping", "", hint=hint)
    for name, value in condition.items():
        if not isinstance(name, str) or not name.strip() or not isinstance(value, (str, bool, int)):
            message = f"when has {shown(name)}: {shown(value)}, not the name of an attribute with a text or a number"
            raise refuse("invalid-condition", message, "", hint=hint)
    return MappingProxyType(dict(sorted(condition.items()))) if condition else NO_CONDITION


def check_attribute_name(name: Any, *, op: str) -> None:
    """Check the name of the attribute that holds shardings.

    Raises:
        PluginError: it is not a name.
    """
    if not isinstance(name, str) or not name.strip():
        hint = 'sharding_attribute="sdy.sharding" is the default'
        raise refuse("invalid-definition", f"sharding_attribute is {shown(name)}, not a name", op, hint=hint)


def check_rule(rule: Any, *, op: str, is_glob: bool) -> None:
    """Check a rule: a function of the op, or an object with `get_sharding_rule`.

    Raises:
        PluginError: it is something else, or it cannot be called with an op.
    """
    if rule is None:
        return
    if is_glob:
        hint = "register the rule under every full op name"
        raise refuse("invalid-glob", "a name with wildcards can only give traits, not a sharding rule", op, hint=hint)
    if isinstance(rule, type):
        hint = f"{rule.__name__}()"
        raise refuse("invalid-rule", f"the rule is the class {rule.__name__}, not an object", op, hint=hint)
    method = getattr(rule, "get_sharding_rule", None)
    if method is None and not callable(rule):
        names = [name for name in dir(type(rule)) if not name.startswith("_")]
        meant = next((name for name in names if did_you_mean("get_sharding_rule", [name])), "")
        hint = f"{meant} is not the method's name: did you mean get_sharding_rule?" if meant else ""
        message = f"{shown(rule)} is neither a function of the op nor an object with get_sharding_rule"
        raise refuse("invalid-rule", message, op, hint=hint)
    called, what = (rule, "the rule function") if method is None else (method, "get_sharding_rule")
    check_callable(called, op=op, code="invalid-rule", what=what, arguments=("op",), optional=("options",))


def check_traits_of(function: Any, *, op: str) -> None:
    """Check a predicate.

    Raises:
        PluginError: it is none.
    """
    if function is None:
        return
    if isinstance(function, type) or not callable(function):
        hint = "traits_of=lambda op: [...]; traits of every op of the name go to traits"
        raise refuse("invalid-traits-of", f"traits_of is {shown(function)}, not a function of the op", op, hint=hint)
    check_callable(function, op=op, code="invalid-traits-of", what="traits_of", arguments=("op",))


def check_data_flow(flow: Any, *, op: str) -> None:
    """Check a data flow.

    Raises:
        PluginError: it lacks a method, or one is misspelt or takes other arguments.
    """
    if flow is None:
        return
    code = "invalid-data-flow"
    _check_object(flow, op=op, code=code, what="data flow", needs="LoopDataFlow()")
    protocol = ShardableDataFlowOpInterface
    if not any(hasattr(flow, name) for name in _DATA_FLOW_NEEDS) and not misspelt_methods(
        flow, protocol, _DATA_FLOW_NEEDS
    ):
        hint = "give an object with the methods of ShardableDataFlowOpInterface, such as LoopDataFlow()"
        raise refuse(code, f"{shown(flow)} does not describe data flow", op, hint=hint)
    check_methods(flow, protocol, op=op, code=code, what="the data flow", required=_DATA_FLOW_NEEDS)


def check_cost(cost: Any, *, op: str) -> None:
    """Check a cost, or the function that makes it.

    Raises:
        PluginError: it has none of the methods, or one is misspelt or takes other arguments.
    """
    if cost is None:
        return
    code = "invalid-cost"
    if makes_cost(cost):
        check_callable(cost, op=op, code=code, what="the function that makes the cost", arguments=())
        return
    _check_object(cost, op=op, code=code, what="cost", needs="BranchCost()")
    known = methods_of(CostOpInterface)
    if not any(hasattr(cost, name) for name in known) and not misspelt_methods(cost, CostOpInterface):
        hint = f"give an object with some of the methods {', '.join(known)}"
        raise refuse(code, f"{shown(cost)} does not say what an op costs", op, hint=hint)
    check_methods(cost, CostOpInterface, op=op, code=code, what="the cost")


def makes_cost(cost: Any) -> bool:
    """Return whether the cost of a definition is a function that returns a cost."""
    if isinstance(cost, type) or not callable(cost):
        return False
    return not any(hasattr(cost, name) for name in methods_of(CostOpInterface))


def check_indexing(function: Any, *, op: str) -> None:
    """Check a function for indexing maps.

    Raises:
        PluginError: it is not a function of the op.
    """
    if function is None:
        return
    if isinstance(function, type) or not callable(function):
        message = f"indexing is {shown(function)}, not a function of the op"
        raise refuse("invalid-indexing", message, op, hint="indexing=lambda op: [map_of_the_first_operand, ...]")
    check_callable(function, op=op, code="invalid-indexing", what="indexing", arguments=("op",))


def check_emission(function: Any, *, op: str) -> None:
    """Check a scalar body.

    Raises:
        PluginError: it is not a function of a builder and the op.
    """
    if function is None:
        return
    if isinstance(function, type) or not callable(function):
        message = f"emission is {shown(function)}, not a function of a builder and the op"
        hint = 'emission=lambda b, op: b.op("arith.addf", b.operand(0), b.operand(1))'
        raise refuse("invalid-emission", message, op, hint=hint)
    check_callable(function, op=op, code="invalid-emission", what="emission", arguments=("builder", "op"))


def check_local(local: Any, *, op: str) -> None:
    """Check a local form.

    Raises:
        PluginError: it is not a function of the op and its shard, nor an object that has one.
    """
    if local is None:
        return
    function = getattr(local, "localize", local)
    if isinstance(local, type) or not callable(function):
        message = f"local is {shown(local)}, not a function of the op and its shard"
        raise refuse("invalid-local", message, op, hint="local=lambda op, shard: shard.copy()")
    check_callable(function, op=op, code="invalid-local", what="local", arguments=("op", "shard"))


def check_sizes(sizes: Any, *, op: str) -> None:
    """Check a function of the sizes of results.

    Raises:
        PluginError: it is not a function of the op and of a function that returns integers.
    """
    if sizes is not None and not callable(sizes):
        hint = "sizes=lambda op, numbers_of: ResultSizes(op.operands[0].type.shape)"
        raise refuse("invalid-sizes", f"sizes is {shown(sizes)}, not a function", op, hint=hint)
    check_callable(sizes, op=op, code="invalid-sizes", what="sizes", arguments=("op", "numbers_of"))


def check_mesh_reference(reference: Any, *, op: str) -> None:
    """Check a mesh reference.

    Raises:
        PluginError: it lacks a method, or one is misspelt or takes other arguments.
    """
    if reference is None:
        return
    code = "invalid-mesh-reference"
    _check_object(reference, op=op, code=code, what="mesh_reference", needs="an object with get_mesh and set_mesh")
    required = ("get_mesh", "set_mesh")
    check_methods(reference, MeshReferenceOpInterface, op=op, code=code, what="the mesh reference", required=required)


def _check_object(thing: Any, *, op: str, code: str, what: str, needs: str) -> None:
    if isinstance(thing, type):
        hint = f"{thing.__name__}()"
        raise refuse(code, f"the {what} is the class {thing.__name__}, not an object", op, hint=hint)
    if inspect.isroutine(thing):
        raise refuse(code, f"the {what} is a function, not an object", op, hint=f"give {needs}")
