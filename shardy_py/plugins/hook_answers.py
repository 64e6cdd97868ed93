"""Answers of a plugin to the hooks, and checks of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pluggy
from attrs import evolve

from shardy_py.errors import Diagnostic, PluginError, did_you_mean, with_article
from shardy_py.guards.error_texts import location_of, shorten_location, shown
from shardy_py.guards.guard import Guard, as_boolean
from shardy_py.ir.interfaces.frontend import BUNDLED_NAMES, Frontend
from shardy_py.plugins import hookspecs
from shardy_py.plugins.dialect import Dialect
from shardy_py.plugins.load_errors import Candidate, broken
from shardy_py.plugins.op_definition import OpDefinition
from shardy_py.schedule.model import Entry, OpPriority, Selector


def check_marks(candidate: Candidate, plugin: object, manager: pluggy.PluginManager) -> None:
    """Check that a plugin has hooks, and that each function named as one is marked as one.

    Raises:
        PluginError: a mark is missing, or there is no hook.
    """
    called = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
    known = _hook_names()
    for name in dir(plugin):
        if name in called or not name.startswith("shardy_register_"):
            continue
        if name not in known:
            reason = f"there is no hook {name}"
            raise PluginError(broken(candidate, reason, hint=did_you_mean(name, known)))
        if not callable(getattr(plugin, name)):
            reason = f"{name} is {shown(getattr(plugin, name))}, not a function"
            problem = broken(candidate, reason, hint=f"@hookimpl over def {name}(): return [...]")
            raise PluginError(evolve(problem, location=getattr(plugin, "__file__", None) or ""))
        raise PluginError(
            evolve(
                broken(candidate, f"{name} is not marked as a hook", hint=f"decorate {name} with @hookimpl"),
                location=location_of(getattr(plugin, name)),
            )
        )
    if isinstance(plugin, Dialect):
        hint = "give a module or an object with hooks; Registry.of([dialect]) takes dialects"
        raise PluginError(broken(candidate, f"it is the dialect {plugin.name!r}, not a plugin", hint=hint))
    if not called:
        raise PluginError(broken(candidate, "it implements no hook", hint="decorate its functions with @hookimpl"))


def answers_of(
    candidate: Candidate, manager: pluggy.PluginManager, hook: str, wanted: str, accept: Callable[[Any], bool]
) -> Iterator[Any]:
    """Yield the answers of a plugin to a hook; the functions are called here, as pluggy leaves out None."""
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        answer = implementation.function()
        try:
            yield from _checked(candidate, answer, hook, wanted, accept)
        except PluginError as error:
            location = location_of(implementation.function)
            raise PluginError(*(evolve(item, location=location) for item in error.diagnostics)) from None


def _checked(candidate: Candidate, answer: Any, hook: str, wanted: str, accept: Callable[[Any], bool]) -> Sequence[Any]:
    """Return the answer of a hook.

    Raises:
        PluginError: it is not a list of what the hook registers.
    """
    if isinstance(answer, (list, tuple)) and all(map(accept, answer)):
        return answer
    hint = "return [...]" if accept(answer) else ""
    if answer is None:
        hint = "return a list, [] for none; is a return missing?"
    if isinstance(answer, (list, tuple)):
        wrong = next(item for item in answer if not accept(item))
        hint = _pass_hint(wrong) if hook == "shardy_register_passes" else _item_hint(wrong)
    what = with_article(type(answer).__name__) if accept(answer) else shown(answer)
    raise PluginError(broken(candidate, f"{hook} returned {what}, not a list of {wanted}", hint=hint))


def _pass_hint(wrong: Any) -> str:
    if not isinstance(wrong, type):
        return f"give the class, not an object: {type(wrong).__name__}" if hasattr(wrong, "run") else ""
    if not callable(getattr(wrong, "run", None)):
        return f"{wrong.__name__} has no method run(self, program, context)"
    return f"{wrong.__name__} has no name: name: ClassVar[str] = ..."


def _item_hint(wrong: Any) -> str:
    if isinstance(wrong, type):
        return f"give an object of the class: {wrong.__name__}(...)"
    if isinstance(wrong, (Selector, Entry)):
        entry = f"Entry({wrong})" if isinstance(wrong, Selector) else f"{wrong}"
        return f"a priority has a level, too: OpPriority(0, {entry})"
    return ""


def is_dialect(item: Any) -> bool:
    """Return whether an answer of `shardy_register_dialects` has this in its list."""
    return isinstance(item, Dialect)


def is_priority(item: Any) -> bool:
    """Return whether an answer of `shardy_register_schedules` has this in its list."""
    return isinstance(item, OpPriority)


def is_pass(item: Any) -> bool:
    """Return whether an answer of `shardy_register_passes` has this in its list."""
    return isinstance(item, type) and isinstance(getattr(item, "name", None), str) and callable(getattr(item, "run", 0))


def is_frontend(item: Any) -> bool:
    """Return whether an answer of `shardy_register_frontends` has this in its list."""
    return not isinstance(item, type) and isinstance(getattr(item, "name", None), str) and hasattr(item, "accepts")


def is_emitter(item: Any) -> bool:
    """Return whether an answer of `shardy_register_emitters` has this in its list."""
    methods = ("accepts", "launch", "entry")
    has_methods = all(callable(getattr(item, name, None)) for name in methods)
    return not isinstance(item, type) and isinstance(getattr(item, "name", None), str) and has_methods


def is_device(item: Any) -> bool:
    """Return whether an answer of `shardy_register_devices` has this in its list."""
    return isinstance(item, Path) and item.suffix == ".toml"


def check_frontends(candidate: Candidate, frontends: Iterable[Frontend]) -> None:
    """Check that the frontends of a plugin have names of their own and all methods.

    Raises:
        PluginError: a name is taken, or a method is missing.
    """
    for frontend in frontends:
        if frontend.name in BUNDLED_NAMES:
            reason = f"its frontend is named {frontend.name!r}, as one of this package"
            raise PluginError(broken(candidate, reason, hint="give it another name"))
        methods = [name for name, item in vars(Frontend).items() if callable(item) and not name.startswith("_")]
        missing = [name for name in methods if not callable(getattr(frontend, name, None))]
        if missing:
            reason = f"its frontend {frontend.name!r} has no {' and no '.join(missing)}"
            problem = broken(candidate, reason, hint="derive its class from Frontend, which has defaults")
            raise PluginError(evolve(problem, location=location_of(frontend)))


def check_own_clashes(candidate: Candidate, dialects: Iterable[Dialect]) -> None:
    """Check that a plugin defines each op once, in whichever of its dialects.

    Raises:
        PluginError: it defines one twice.
    """
    first: dict[str, OpDefinition] = {}
    for definition in (item for dialect in dialects for item in dialect.definitions):
        other = first.setdefault(definition.key, definition)
        if other is not definition and not definition.is_glob:
            reason = f"it defines the op {definition.key!r} in two dialects"
            hint = f"leave out one; the other is at {shorten_location(other.location)}"
            raise PluginError(
                evolve(broken(candidate, reason, hint=hint), location=shorten_location(definition.location))
            )


def check_priorities(
    candidate: Candidate, priorities: Iterable[OpPriority], dialects: Iterable[Dialect], *, location: str = ""
) -> None:
    """Check that a plugin gives priorities to its own ops only.

    Raises:
        PluginError: it speaks of others.
    """
    op_names = [item.name for dialect in dialects for item in dialect.definitions]
    for priority in priorities:
        for reason, hint in _priority_problems(priority, op_names):
            problem = broken(candidate, f"{priority} {reason}", hint=hint)
            raise PluginError(evolve(problem, location=location))


def _priority_problems(priority: OpPriority, op_names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the problems of the ops of a priority, each with a hint."""
    selector = priority.entry.selector
    spaces = {name.split(".")[0] for name in op_names}
    if not selector.names or selector.traits:
        yield "does not choose its ops by names only", "give the names, or globs, of ops of the plugin"
    for name in selector.names:
        if name.split(".")[0] not in spaces:
            hint = did_you_mean(name, op_names) or "a plugin gives priorities to its own ops only"
            yield f"speaks of {name}, which is not an op of the plugin", hint
        elif not any(fnmatchcase(known, name) or fnmatchcase(name, known) for known in op_names):
            yield f"speaks of {name}, which the plugin does not define", did_you_mean(name, op_names)


def guarded_priority(candidate: Candidate, priority: OpPriority) -> OpPriority:
    """Return a priority with its function of the op behind the guard."""
    selector = priority.entry.selector
    if not selector.is_predicated:
        return priority
    owner = f"plugin {candidate.name!r}" + (f" ({candidate.origin})" if candidate.origin else "")
    guarded = Guard(selector.predicate, "the predicate of a priority", owner).wrap(as_boolean)
    guarded.__name__ = getattr(selector.predicate, "__name__", "predicate")
    return evolve(priority, entry=evolve(priority.entry, selector=evolve(selector, predicate=guarded)))


def foreign_ops(candidate: Candidate, dialects: Iterable[Dialect]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each op that a plugin defines outside its dialects, which is nearly always a mistake."""
    spaces = {dialect.name for dialect in dialects}
    for dialect in dialects:
        for item in dialect.definitions:
            space, dot, _ = item.name.partition(".")
            if item.is_glob or (dot and (space == dialect.name or space in spaces)):
                continue
            rest = item.name.partition(".")[2] if dot else item.name
            message = f"plugin {candidate.name!r} defines the op in the dialect {dialect.name!r}, which is not its own"
            meant = f"did you mean {dialect.name}.{rest}? " if not dot or did_you_mean(space, [dialect.name]) else ""
            hint = f"{meant}otherwise define it in Dialect({space!r})" if dot else meant.strip()
            yield Diagnostic("op-outside-dialect", message, shorten_location(item.location), item.name, hint)


def _hook_names() -> list[str]:
    return sorted(name for name in vars(hookspecs) if name.startswith("shardy_"))


def unknown_hook(candidate: Candidate, plugin: object, error: pluggy.PluginValidationError) -> Diagnostic:
    """Return the diagnostic for a hook that pluggy refuses."""
    known = _hook_names()
    reason = str(error).strip().splitlines()[-1].split(" in plugin ")[0]
    unknown = re.search(r"unknown hook '(\w+)'", reason)
    named = unknown or re.search(r"hookimpl definition: (\w+)\(", str(error))
    meant = did_you_mean(unknown[1], known) if unknown else "hooks take no parameters;"
    return Diagnostic(
        "invalid-hook",
        f"plugin {candidate.name!r} implements a hook that does not exist or has other parameters: {reason}",
        location_of(getattr(plugin, named[1], None)) if named else "",
        hint=f"{meant} the hooks are {', '.join(known)}".lstrip(),
    )
