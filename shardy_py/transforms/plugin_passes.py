"""Passes of plugins, over programs and over kernels: where they run among other passes, and the guard around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Protocol

from attrs import evolve, field

from shardy_py.errors import Diagnostic, PluginError, ShardyError, did_you_mean
from shardy_py.guards.error_texts import describe_error, shown
from shardy_py.guards.guard import Guard, InvalidAnswer
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.ir.graph.verify import diagnose
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.plugins import Registry
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.run import PassOver
from shardy_py.values import frozen

RUNS_BESIDE = ("runs_before", "runs_after")
"""The attributes in which a pass of a plugin names the pass beside which it runs."""
_PASS_FAILED = "pass-failed"


class SubjectCheck(Protocol):
    """A check of a program or module around a pass of a plugin; made before the pass runs."""

    def is_untouched(self, own_names: frozenset[str]) -> bool:
        """Return whether the subject is as it was, and has no op of the plugin, whose op names and globs are given."""
        ...

    def find_problem(self) -> Diagnostic | None:
        """Return the error for a subject that the pass left malformed, or None where it is well formed."""
        ...


@frozen
class SubjectKind:
    """The kind of subject that passes run over: programs, or the modules of kernels.

    Args:
        noun: The noun for messages, ``program``.
        check: Makes the check of a subject before a pass of a plugin.
        has_one_pipeline: Whether all passes are in one pipeline, so that a pass beside none of them is an error.
            Otherwise such a pass is left out, as another pipeline may have the pass that it names.
    """

    noun: str
    check: Callable[[Any], SubjectCheck]
    has_one_pipeline: bool = False


@frozen(eq=False)
class ProgramCheck:
    """Record of a program before a pass of a plugin, against which the program after it is checked.

    Args:
        program: The program.
        fingerprint: Its ops, operands and shardings.
        known_problems: The problems that it had already.
        had_functions: Whether it had functions.
        names: Its ops that are in the native program, with their names.
    """

    program: Program
    fingerprint: tuple[object, ...]
    known_problems: frozenset[tuple[str, str, str]]
    had_functions: bool
    names: tuple[tuple[Op, str], ...]

    @classmethod
    def of(cls, program: Program) -> ProgramCheck:
        """Return the check of a program as it is now, whose values the pass may give other types."""
        program.kinds_hold = False
        known = frozenset(map(_key, _problems(program)))
        names = tuple([(op, op.name) for op in program.walk() if op.handle is not None])
        return cls(program, _fingerprint(program), known, bool(program.functions), names)

    def is_untouched(self, own_names: frozenset[str]) -> bool:
        """Return whether the program is as it was, and has no op of the names and globs of a plugin."""
        is_about = any(fnmatchcase(name, pattern) for pattern in own_names for name in self.program.op_names)
        return not is_about and _fingerprint(self.program) == self.fingerprint

    def find_problem(self) -> Diagnostic | None:
        """Return the first problem that the program did not have before, or None."""
        problems = [item for item in _problems(self.program) if _key(item) not in self.known_problems]
        if not problems and self.had_functions and not self.program.functions:
            problems = [Diagnostic(_INVALID_PROGRAM, "it has no function any more")]
        problems += [_renamed(op, name) for op, name in self.names if op.name != name and op.parent is not None]
        return problems[0] if problems else None


def _problems(program: Program) -> list[Diagnostic]:
    """Return the problems of a program, even of one whose parts are not of the types that they should be."""
    try:
        return list(_invalid_parts(program)) or list(diagnose(program))
    except Exception as error:
        return [Diagnostic(_INVALID_PROGRAM, f"looking at it fails with {describe_error(error)}")]


def _invalid_parts(program: Program) -> Iterator[Diagnostic]:
    for op in program.walk():
        if not isinstance(op.name, str) or not op.name or any(map(str.isspace, op.name)):
            yield Diagnostic(_INVALID_PROGRAM, f"{shown(op.name)} is not a valid op name", op.location)
        for value in (*op.operands, *op.results):
            if not isinstance(value, Value) or not isinstance(value.type, TensorType | OpaqueType):
                yield Diagnostic(_INVALID_PROGRAM, "a value of the op has no type", op.location, op.name)
        invalid_names = [name for name in op.attributes if not isinstance(name, str)]
        if invalid_names:
            message = f"the op has an attribute with the name {shown(invalid_names[0])}"
            yield Diagnostic(_INVALID_PROGRAM, message, op.location, op.name)
    for sharding in program.shardings.values():
        if not isinstance(sharding, TensorSharding):
            yield Diagnostic(_INVALID_PROGRAM, f"{shown(sharding)} is not a sharding")


def _renamed(op: Op, before: str) -> Diagnostic:
    """Return the problem of an op that is in the native program under another name, which it keeps there."""
    return Diagnostic(_INVALID_PROGRAM, f"{before} is called {op.name} now; make another op", op.location, before)


def _key(item: Diagnostic) -> tuple[str, str, str]:
    return item.code, item.op, item.message


def _fingerprint(program: Program) -> tuple[object, ...]:
    """Return a value that changes with the ops of a program, their operands and the shardings."""
    ops = [
        (op.id, op.name, tuple(value.id for value in op.operands), tuple(op.attributes), len(op.regions))
        for op in program.walk()
    ]
    return tuple(ops), tuple(program.shardings.items()), tuple(program.rules)


PROGRAMS = SubjectKind("program", ProgramCheck.of)


def with_plugin_passes(passes: Iterable[Pass], registry: Registry) -> tuple[Pass, ...]:
    """Return passes over programs with those of plugins: before the first of the name they give, or after the last.

    Several beside the same one come in the order of their names. A pass that names none, or one that is not among the
    passes, is left out.
    """
    return insert_passes(tuple(passes), registry.passes, registry, PROGRAMS)


def insert_passes(
    passes: tuple[Any, ...], classes: Mapping[str, type[Any]], registry: Registry, kind: SubjectKind
) -> tuple[Any, ...]:
    """Return passes with those of plugins among them.

    Args:
        passes: The passes.
        classes: The classes of the passes of plugins by their names.
        registry: Knows which plugin has which pass.
        kind: What the passes run over.

    Raises:
        PluginError: a pass of a plugin cannot be made, or names none of the passes although there are no others.
    """
    if not kind.has_one_pipeline:
        classes = {name: class_ for name, class_ in classes.items() if any(_wanted_neighbours(class_))}
    if not classes or not (kind.has_one_pipeline or _are_wanted(passes, classes.values())):
        return passes
    neighbours = _Neighbours.of(passes)
    for name, class_ in sorted(classes.items()):
        before, after = _wanted_neighbours(class_)
        if before in neighbours.first or after in neighbours.last:
            neighbours.add(guard_pass(name, class_, registry, kind=kind), before=before, after=after)
        elif kind.has_one_pipeline:
            raise PluginError(_unknown_neighbour(name, before or after or "", neighbours.first, kind))
    return tuple(item for index, bundled in enumerate(passes) for item in neighbours.around(index, bundled))


def _are_wanted(passes: tuple[Any, ...], classes: Iterable[type[Any]]) -> bool:
    """Return whether a pass of a plugin runs beside one of some passes."""
    return not {name for class_ in classes for name in _wanted_neighbours(class_)}.isdisjoint(map(_known_name, passes))


def _known_name(item: Any) -> str:
    """Return the name by which a pass is found beside which others run; it may stand in for another pass."""
    name: str = getattr(item, "stands_for", item.name)
    return name


def _wanted_neighbours(class_: type[Any]) -> tuple[str | None, ...]:
    return tuple([getattr(class_, attribute, None) for attribute in RUNS_BESIDE])


def _unknown_neighbour(name: str, neighbour: str, known: Iterable[str], kind: SubjectKind) -> Diagnostic:
    message = f"the pass {name!r} runs beside {neighbour!r}, which is not a {kind.noun} pass"
    names = list(known)
    hint = did_you_mean(neighbour, names, otherwise=f"runs_before or runs_after is one of {', '.join(names)}")
    return Diagnostic("unknown-pass", message, hint=hint)


@frozen
class _Neighbours:
    """The indices of passes by their names, and the passes of plugins beside them.

    Args:
        first: Name to the first index.
        last: Name to the last index.
        before: Index to the passes before it.
        after: Index to the passes after it.
    """

    first: dict[str, int]
    last: dict[str, int]
    before: dict[int, list[Any]] = field(factory=dict)
    after: dict[int, list[Any]] = field(factory=dict)

    @classmethod
    def of(cls, passes: tuple[Any, ...]) -> _Neighbours:
        names = [_known_name(item) for item in passes]
        first: dict[str, int] = {}
        for index, name in enumerate(names):
            first.setdefault(name, index)
        return cls(first, {name: index for index, name in enumerate(names)})

    def add(self, item: Any, *, before: str | None, after: str | None) -> None:
        if before in self.first:
            self.before.setdefault(self.first[before], []).append(item)
        elif after in self.last:
            self.after.setdefault(self.last[after], []).append(item)

    def around(self, index: int, item: Any) -> tuple[Any, ...]:
        return (*self.before.get(index, ()), item, *self.after.get(index, ()))


def guard_pass(
    name: str,
    class_: type[Any],
    registry: Registry,
    make: Callable[[], Any] | None = None,
    *,
    kind: SubjectKind = PROGRAMS,
) -> Any:
    """Return a pass of a plugin behind the guard.

    Args:
        name: Its name.
        class_: Its class.
        registry: Knows whose it is.
        make: Makes it, where it has options.
        kind: What it runs over.

    Raises:
        PluginError: it cannot be made.
    """
    info = next((info for info in registry.plugins if name in info.passes), None)
    owner = "an unknown owner" if info is None else info.owner
    item = Guard(make or class_, f"the pass {name!r}", owner, code=_PASS_FAILED).call()
    is_tolerated = info is not None and owner in registry.tolerated
    return GuardedPass(item, name, owner, kind, frozenset(info.op_names if info else ()), is_tolerated)


@frozen(eq=False)
class GuardedPass:
    """A pass of a plugin; an error in it, or an invalid subject after it, names the plugin.

    Args:
        item: The pass.
        name: Its name.
        owner: The words that name the plugin.
        kind: What it runs over.
        own_names: The names and globs of the ops of the plugin.
        is_tolerated: Whether a failure that leaves a subject without such ops as it was is a warning only.
    """

    item: PassOver[Any, Any]
    name: str
    owner: str
    kind: SubjectKind
    own_names: frozenset[str]
    is_tolerated: bool

    def run(self, subject: Any, context: Any) -> None:
        """Run the pass, and check the subject after it.

        Raises:
            PluginError: it raises, returns something, or leaves a subject that is not well formed.
        """
        subject_check = self.kind.check(subject)
        guard = Guard(self.item.run, f"the pass {self.name!r}", self.owner, code=_PASS_FAILED)
        try:
            guard.call(subject, context, check=self._check_answer)
        except ShardyError as error:
            if not self.is_tolerated or not subject_check.is_untouched(self.own_names):
                raise
            context.warnings.extend(error.diagnostics)
            return
        problem = subject_check.find_problem()
        if problem is not None:
            message = f"left a {self.kind.noun} that is not well formed: {problem.message}"
            (refusal,) = guard.refusal(message).diagnostics
            raise PluginError(evolve(refusal, op=problem.op, location=problem.location))

    def _check_answer(self, answer: Any, op: Any) -> None:
        if answer is not None:
            hint = f"a pass rewrites the {self.kind.noun} that it gets, in place, and returns nothing"
            raise InvalidAnswer(f"returned {shown(answer)}", hint)


_INVALID_PROGRAM = "broken-program"
