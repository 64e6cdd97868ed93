"""The check of a program around a pass of a plugin."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from shardy_py.errors import Diagnostic
from shardy_py.guards.error_texts import describe_error, shown
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.ir.graph.verify import diagnose
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

_CODE = "broken-program"


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
        """Return the check of a program as it is now."""
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
            problems = [Diagnostic(_CODE, "it has no function any more")]
        problems += [_renamed(op, name) for op, name in self.names if op.name != name and op.parent is not None]
        return problems[0] if problems else None


def _problems(program: Program) -> list[Diagnostic]:
    """Return the problems of a program, even of one whose parts are not of the types that they should be."""
    try:
        return list(_invalid_parts(program)) or list(diagnose(program))
    except Exception as error:
        return [Diagnostic(_CODE, f"looking at it fails with {describe_error(error)}")]


def _invalid_parts(program: Program) -> Iterator[Diagnostic]:
    for op in program.walk():
        if not isinstance(op.name, str) or not op.name or any(map(str.isspace, op.name)):
            yield Diagnostic(_CODE, f"{shown(op.name)} is no name of an op", op.location)
        for value in (*op.operands, *op.results):
            if not isinstance(value, Value) or not isinstance(value.type, TensorType | OpaqueType):
                yield Diagnostic(_CODE, "a value of the op has no type", op.location, op.name)
        invalid_names = [name for name in op.attributes if not isinstance(name, str)]
        if invalid_names:
            message = f"the op has an attribute with the name {shown(invalid_names[0])}"
            yield Diagnostic(_CODE, message, op.location, op.name)
    for sharding in program.shardings.values():
        if not isinstance(sharding, TensorSharding):
            yield Diagnostic(_CODE, f"{shown(sharding)} is no sharding")


def _renamed(op: Op, before: str) -> Diagnostic:
    """Return the problem of an op that is in the native program under another name, which it keeps there."""
    return Diagnostic(_CODE, f"{before} is called {op.name} now; make another op", op.location, before)


def _key(item: Diagnostic) -> tuple[str, str, str]:
    return item.code, item.op, item.message


def _fingerprint(program: Program) -> tuple[object, ...]:
    """Return a value that changes with the ops of a program, their operands and the shardings."""
    ops = [
        (op.id, op.name, tuple(value.id for value in op.operands), tuple(op.attributes), len(op.regions))
        for op in program.walk()
    ]
    return tuple(ops), tuple(program.shardings.items()), tuple(program.rules)
