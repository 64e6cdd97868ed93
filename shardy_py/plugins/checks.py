"""What is wrong with the arguments of an op definition, said where it is written and not where it is used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from shardy_py.errors import Diagnostic, PluginError, did_you_mean
from shardy_py.ir.costs import CostOpInterface
from shardy_py.ir.guard import Unfit, describe_error, few, shown
from shardy_py.ir.interfaces import (
    TRAITS,
    MeshReferenceOpInterface,
    ShardableDataFlowOpInterface,
    Trait,
)

_TRAIT_NAMES = tuple(trait.name for trait in TRAITS)
_NO_FUNCTION = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_WORDS = ("get_", "set_", "should_", "transform_")
_NEARLY = 0.85
"""How alike the name of a method of a plugin and one of a protocol are where it is a slip and no other method."""
_DATA_FLOW_NEEDS = ("get_edge_sources", "get_edge_owner_from_target", "get_edge_owner_from_source")


def refuse(code: str, message: str, op: str = "", *, hint: str = "") -> PluginError:
    """Return the error about an argument."""
    return PluginError(Diagnostic(code, message, op=op, hint=hint))


def as_traits(given: Any, *, op: str = "", argument: str = "traits") -> frozenset[Trait]:
    """Return the traits of an argument as a set.

    Raises:
        PluginError: it is no list, or something in it is no trait.
    """
    if isinstance(given, frozenset) and all(isinstance(item, Trait) for item in given):
        return given
    if isinstance(given, Trait):
        raise refuse("invalid-trait", f"{argument} is the trait {given}, not a list of traits", op, hint=f"[{given}]")
    if isinstance(given, str) or not isinstance(given, Iterable):
        hint = _trait_hint(given) if isinstance(given, str) else f"{argument}=[Elementwise]"
        raise refuse("invalid-trait", f"{argument} is {shown(given)}, not a list of traits", op, hint=hint)
    try:
        traits = few(given)
    except Unfit as error:
        raise refuse("invalid-trait", f"{argument} {error.message}", op, hint=error.hint) from None
    for trait in traits:
        if not isinstance(trait, Trait) or not isinstance(trait.name, str):
            raise refuse("invalid-trait", f"{shown(trait)} is not a trait", op, hint=_trait_hint(trait))
    return frozenset(traits)


def _trait_hint(given: Any) -> str:
    use = "use the markers of shardy_py.plugins, for example traits=[Elementwise]"
    if not isinstance(given, str):
        return use
    if given in _TRAIT_NAMES:
        return f"give the marker, not its name: traits=[sdy.{given}]"
    meant = did_you_mean(given, _TRAIT_NAMES)
    return f"{meant} {use}" if meant else use


def check_dialect_name(name: Any) -> None:
    """Check the name of a dialect.

    Raises:
        PluginError: it is no name of a dialect.
    """
    if not isinstance(name, str) or not name.strip():
        raise refuse("invalid-dialect", f"a dialect has a name, not {shown(name)}", hint='Dialect("toy")')
    if any(map(str.isspace, name)):
        raise refuse("invalid-dialect", f"the name of a dialect has no white space: {shown(name)}")


def check_op_name(name: Any) -> None:
    """Check the name of an op.

    Raises:
        PluginError: it is no name of an op.
    """
    if callable(name):
        named = getattr(name, "__name__", "f")
        hint = f'as a decorator it takes the name, too: @dialect.op("dialect.{named}")'
        raise refuse("invalid-op-name", f"an op is registered under its full name, not {shown(name)}", hint=hint)
    if not isinstance(name, str) or not name.strip():
        raise refuse("invalid-op-name", f"an op is registered under its full name, not {shown(name)}")
    if any(map(str.isspace, name)):
        raise refuse("invalid-op-name", f"the name of an op has no white space: {shown(name)}")


def check_flag(given: Any, *, op: str, argument: str) -> None:
    """Check an argument that is true or false.

    Raises:
        PluginError: it is something else.
    """
    if not isinstance(given, bool):
        raise refuse("invalid-definition", f"{argument} is {shown(given)}, not True or False", op)


def check_attribute_name(given: Any, *, op: str) -> None:
    """Check the name of the attribute that holds shardings.

    Raises:
        PluginError: it is no name.
    """
    if not isinstance(given, str) or not given.strip():
        hint = 'sharding_attribute="sdy.sharding" is the default'
        raise refuse("invalid-definition", f"sharding_attribute is {shown(given)}, not a name", op, hint=hint)


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
    """Check what describes data flow.

    Raises:
        PluginError: it lacks a method, or one is misspelt or takes other arguments.
    """
    if flow is None:
        return
    code = "invalid-data-flow"
    _check_object(flow, op=op, code=code, what="data flow", needs="LoopDataFlow()")
    protocol = ShardableDataFlowOpInterface
    if not any(hasattr(flow, name) for name in _DATA_FLOW_NEEDS) and not _misspelt(flow, protocol, _DATA_FLOW_NEEDS):
        hint = "give an object with the methods of ShardableDataFlowOpInterface, such as LoopDataFlow()"
        raise refuse(code, f"{shown(flow)} does not describe data flow", op, hint=hint)
    check_methods(flow, protocol, op=op, code=code, what="the data flow", required=_DATA_FLOW_NEEDS)


def check_cost(cost: Any, *, op: str) -> None:
    """Check what says what an op costs.

    Raises:
        PluginError: it has none of the methods, or one is misspelt or takes other arguments.
    """
    if cost is None:
        return
    code = "invalid-cost"
    _check_object(cost, op=op, code=code, what="cost", needs="BranchCost()")
    known = _methods_of(CostOpInterface)
    if not any(hasattr(cost, name) for name in known) and not _misspelt(cost, CostOpInterface):
        hint = f"give an object with some of the methods {', '.join(known)}"
        raise refuse(code, f"{shown(cost)} does not say what an op costs", op, hint=hint)
    check_methods(cost, CostOpInterface, op=op, code=code, what="the cost")


def check_indexing(function: Any, *, op: str) -> None:
    """Check what gives the indexing maps of an op.

    Raises:
        PluginError: it is no function of the op.
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
        PluginError: it is no function of a builder and the op.
    """
    if function is None:
        return
    if isinstance(function, type) or not callable(function):
        message = f"emission is {shown(function)}, not a function of a builder and the op"
        hint = 'emission=lambda b, op: b.op("arith.addf", b.operand(0), b.operand(1))'
        raise refuse("invalid-emission", message, op, hint=hint)
    check_callable(function, op=op, code="invalid-emission", what="emission", arguments=("builder", "op"))


def check_mesh_reference(reference: Any, *, op: str) -> None:
    """Check what knows the mesh of an op.

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


def check_methods(thing: Any, protocol: type, *, op: str, code: str, what: str, required: tuple[str, ...] = ()) -> None:
    """Check the methods of an object against those of a protocol.

    Args:
        thing: The object.
        protocol: The protocol.
        op: The op that it is given for.
        code: The code of the error.
        what: What the object is.
        required: The methods without a default.

    Raises:
        PluginError: one is missing, misspelt, no method, or takes other arguments.
    """
    known = _methods_of(protocol)
    for name, meant in _misspelt(thing, protocol, required):
        raise refuse(code, f"{what} has the method {name}, which means nothing", op, hint=meant)
    for name in known:
        is_own = is_written(thing, name, protocol)
        if name in required and not is_own:
            message = f"{what}, {type(thing).__name__}, lacks the method {name}"
            raise refuse(code, message, op, hint=f"write def {name}{_signature(protocol, name)}")
        if not is_own:
            continue
        method = getattr(thing, name)
        if not callable(method):
            raise refuse(code, f"{what} has {name} = {shown(method)}, which is no method", op)
        wanted = tuple(inspect.signature(getattr(protocol, name)).parameters)[1:]
        check_callable(method, op=op, code=code, what=f"{name} of {what}", arguments=wanted)


def check_callable(
    function: Any, *, op: str, code: str, what: str, arguments: tuple[str, ...], optional: tuple[str, ...] = ()
) -> None:
    """Check that a function can be called with some arguments, as far as its signature tells.

    Args:
        function: The function.
        op: The op that it is given for.
        code: The code of the error.
        what: What it is.
        arguments: The names of the arguments that it gets.
        optional: The names of those that it gets besides if it wants them.

    Raises:
        PluginError: it takes others, or it is a generator or a coroutine.
    """
    if any(_plainly_takes(function, len(arguments) + more) for more in range(len(optional) + 1)):
        return
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise refuse(code, f"{what} is a coroutine (async def)", op, hint="write def, it is called and not awaited")
    if inspect.isgeneratorfunction(function) and what == "the rule function":
        raise refuse(code, f"{what} is a generator", op, hint="write return in the place of yield")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    reason = _misfit(signature, arguments)
    for count in range(1, len(optional) + 1):
        reason = reason and _misfit(signature, (*arguments, *optional[:count]))
    if reason:
        wanted = ", ".join(arguments) + "".join(f"[, {name}]" for name in optional)
        hint = f"it is called with ({wanted})" + ("; is self missing?" if _lacks_self(function) else "")
        raise refuse(code, f"{what} does not take its arguments: {reason}", op, hint=hint)


def check_factor_marks(kinds: dict[str, Any], *, op: str) -> None:
    """Check the marks of a rule that is given as a text.

    Raises:
        PluginError: one is neither a text nor a list of names.
    """
    for kind, factors in kinds.items():
        if isinstance(factors, str):
            continue
        if not isinstance(factors, Iterable) or isinstance(factors, bytes):
            hint = f'{kind}="k" or {kind}=("k",)'
            raise refuse("invalid-rule", f"{kind} is {shown(factors)}, not names of factors", op, hint=hint)
        wrong = next((item for item in factors if not isinstance(item, str)), None)
        if wrong is not None:
            raise refuse("invalid-rule", f"{kind} names {shown(wrong)}, which is no factor", op, hint=f'{kind}="k"')


def _plainly_takes(function: Any, count: int) -> bool:
    """Return whether an ordinary function takes so many arguments; much faster than a signature."""
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return False
    code = function.__code__
    least = code.co_argcount - len(function.__defaults__ or ())
    return least <= count <= code.co_argcount and not code.co_kwonlyargcount and not code.co_flags & _NO_FUNCTION


def _misfit(signature: inspect.Signature, arguments: tuple[str, ...]) -> str:
    try:
        signature.bind(*arguments)
    except TypeError as error:
        return describe_error(error).removeprefix("TypeError: ")
    return ""


def _lacks_self(function: Callable[..., Any]) -> bool:
    names = list(inspect.signature(getattr(function, "__func__", function)).parameters)
    return inspect.ismethod(function) and not (names and names[0] == "self")


def _methods_of(protocol: type) -> tuple[str, ...]:
    return tuple(name for name, item in vars(protocol).items() if inspect.isfunction(item) and name.startswith(_WORDS))


def _misspelt(thing: Any, protocol: type, required: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return the methods of an object whose names are nearly those of a protocol, with what they stand for.

    Names that are only like the one of a method that must be written are among them where that is missing.
    """
    missing = [name for name in _methods_of(protocol) if not is_written(thing, name, protocol)]
    needed = [name for name in missing if name in required]
    found = []
    for name in dir(type(thing)):
        if name.startswith("_") or hasattr(protocol, name) or not callable(getattr(type(thing), name)):
            continue
        meant = did_you_mean(name, needed) or did_you_mean(name, missing, likeness=_NEARLY)
        if meant:
            found.append((name, meant))
    return found


def is_written(thing: Any, name: str, protocol: type) -> bool:
    """Return whether an object has a method of a protocol, other than the default that it may inherit."""
    if name in getattr(thing, "__dict__", ()):
        return True
    own = getattr(type(thing), name, None)
    return own is not None and own is not getattr(protocol, name)


def _signature(protocol: type, name: str) -> str:
    parameters = ", ".join(inspect.signature(getattr(protocol, name)).parameters)
    return f"({parameters})"
