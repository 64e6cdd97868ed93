"""Passes of plugins: their places among other passes, and the guard around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, cast

from attrs import evolve, field

from shardy_py.errors import Diagnostic, PluginError, ShardyError
from shardy_py.guards.error_texts import describe_error, shown
from shardy_py.guards.guard import Guard, Unfit
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.ir.graph.verify import diagnose
from shardy_py.ir.interfaces.passes import Pass, PassContext
from shardy_py.plugins import Registry
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

PLACES = ("runs_before", "runs_after")
"""The attributes in which a pass of a plugin names the pass beside which it runs."""


def with_plugin_passes(passes: Iterable[Pass], registry: Registry) -> tuple[Pass, ...]:
    """Return passes with those of plugins that name one of them: before the first of that name, or after the last.

    Several beside the same one come in the order of their names. A pass that names none, or one that is not among the
    passes, is left out.
    """
    items = tuple(passes)
    placed = {name: class_ for name, class_ in registry.passes.items() if any(_wanted_places(class_))}
    if not placed:
        return items
    places = _Places.of(items)
    for name, class_ in sorted(placed.items()):
        before, after = _wanted_places(class_)
        if before in places.first or after in places.last:
            places.add(guard_pass(name, class_, registry), before=before, after=after)
    return tuple(item for index, own in enumerate(items) for item in places.around(index, own))


def _wanted_places(class_: type[Pass]) -> tuple[str | None, ...]:
    return tuple([getattr(class_, place, None) for place in PLACES])


@frozen
class _Places:
    """The positions of passes by their names, and the passes of plugins beside them.

    Args:
        first: Name to the first position.
        last: Name to the last position.
        before: Position to the passes before it.
        after: Position to the passes after it.
    """

    first: dict[str, int]
    last: dict[str, int]
    before: dict[int, list[Pass]] = field(factory=dict)
    after: dict[int, list[Pass]] = field(factory=dict)

    @classmethod
    def of(cls, passes: tuple[Pass, ...]) -> _Places:
        # A pass may take the place of another one, by whose name it is found.
        names = [getattr(item, "stands_for", item.name) for item in passes]
        last = {name: index for index, name in enumerate(names)}
        first = {name: index for index, name in reversed(list(enumerate(names)))}
        return cls(first, last)

    def add(self, item: Pass, *, before: str | None, after: str | None) -> None:
        if before in self.first:
            self.before.setdefault(self.first[before], []).append(item)
        elif after in self.last:
            self.after.setdefault(self.last[after], []).append(item)

    def around(self, index: int, item: Pass) -> tuple[Pass, ...]:
        return (*self.before.get(index, ()), item, *self.after.get(index, ()))


def guard_pass(name: str, class_: type[Pass], registry: Registry, make: Callable[[], Pass] | None = None) -> Pass:
    """Return a pass of a plugin behind the guard.

    Args:
        name: Its name.
        class_: Its class.
        registry: Knows whose it is.
        make: Makes it, where it has options.

    Raises:
        PluginError: it cannot be made.
    """
    info = next((info for info in registry.plugins if name in info.passes), None)
    owner = "an unknown owner" if info is None else info.owner
    guard = Guard(make or class_, f"the pass {name!r}", owner, code="pass-failed")
    item = guard.call()
    is_tolerated = info is not None and owner in registry.tolerated
    made = GuardedPass(item, name, owner, frozenset(info.op_names if info else ()), is_tolerated)
    # Passes of one class have one name, but for these.
    return cast(Pass, made)


@frozen(eq=False)
class GuardedPass:
    """A pass of a plugin: what goes wrong in it, or with the program after it, names the plugin.

    Args:
        item: The pass.
        name: Its name.
        owner: The words that name the plugin.
        own_names: The names and globs of the ops of the plugin.
        is_tolerated: Whether a failure that leaves a program without such ops as it was is a warning only.
    """

    item: Pass
    name: str
    owner: str
    own_names: frozenset[str]
    is_tolerated: bool

    def run(self, program: Program, context: PassContext) -> None:
        """Run the pass, and look at what it leaves.

        Raises:
            PluginError: it raises, returns something, or leaves a program that is not well formed.
        """
        before, had_functions = _fingerprint(program), bool(program.functions)
        known = set(map(_message, _problems(program)))
        names = [(op, op.name) for op in program.walk() if op.handle is not None]
        guard = Guard(self.item.run, f"the pass {self.name!r}", self.owner, code="pass-failed")
        try:
            guard.call(program, context, check=_nothing)
        except ShardyError as error:
            if not self.is_tolerated or self._is_about(program) or _fingerprint(program) != before:
                raise
            context.warnings.extend(error.diagnostics)
            return
        broken = [item for item in _problems(program) if _message(item) not in known]
        if not broken and had_functions and not program.functions:
            broken = [Diagnostic("broken-program", "it has no function any more")]
        broken += [_renamed(op, name) for op, name in names if op.name != name and op.parent is not None]
        if broken:
            first = broken[0]
            message = f"left a program that is not well formed: {first.message}"
            (problem,) = guard.refusal(message).diagnostics
            raise PluginError(evolve(problem, op=first.op, location=first.location))

    def _is_about(self, program: Program) -> bool:
        return any(fnmatchcase(name, own) for own in self.own_names for name in program.op_names)


def _nothing(answer: Any, op: Any) -> None:
    if answer is not None:
        hint = "a pass rewrites the program that it gets, in place, and returns nothing"
        raise Unfit(f"returned {shown(answer)}", hint)


def _problems(program: Program) -> list[Diagnostic]:
    """Return the problems of a program, even of one whose parts are not of the types that they should be."""
    try:
        return list(_false_parts(program)) or list(diagnose(program))
    except Exception as error:
        return [Diagnostic("broken-program", f"looking at it fails with {describe_error(error)}")]


def _false_parts(program: Program) -> Iterator[Diagnostic]:
    for op in program.walk():
        if not isinstance(op.name, str) or not op.name or any(map(str.isspace, op.name)):
            yield Diagnostic("broken-program", f"{shown(op.name)} is no name of an op", op.location)
        for value in (*op.operands, *op.results):
            if not isinstance(value, Value) or not isinstance(value.type, TensorType | OpaqueType):
                yield Diagnostic("broken-program", "a value of the op has no type", op.location, op.name)
        false = [name for name in op.attributes if not isinstance(name, str)]
        if false:
            message = f"the op has an attribute with the name {shown(false[0])}"
            yield Diagnostic("broken-program", message, op.location, op.name)
    for sharding in program.shardings.values():
        if not isinstance(sharding, TensorSharding):
            yield Diagnostic("broken-program", f"{shown(sharding)} is no sharding")


def _renamed(op: Op, before: str) -> Diagnostic:
    """Return the problem of an op that is in the native program under another name, which it keeps there."""
    return Diagnostic("broken-program", f"{before} is called {op.name} now; make another op", op.location, before)


def _message(item: Diagnostic) -> tuple[str, str, str]:
    return item.code, item.op, item.message


def _fingerprint(program: Program) -> tuple[object, ...]:
    """Return a value that changes with the ops of a program, their operands and the shardings."""
    ops = [
        (op.id, op.name, tuple(value.id for value in op.operands), tuple(op.attributes), len(op.regions))
        for op in program.walk()
    ]
    return tuple(ops), tuple(program.shardings.items()), tuple(program.rules)
