"""MLIR's errors and locations as those of this package."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import evolve
from jaxlib.mlir import ir

from shardy_py.errors import Diagnostic, ShardyError
from shardy_py.support.texts import escape_controls

_LOCATION = r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)'
_SCOPE = r'loc\((?:fused(?:<[^>]*>)?\[)?"((?:[^"\\]|\\.)*)"(?!:\d)'
_SUBJECT = r"^'([\w$.-]+)' op "
# What MLIR adds to errors beside the message: the dump of the op would bury it, the version of bytecode is no fix.
_NOISE = ("see current operation", "in bytecode version")


def location_text(native: object, name: str = "-") -> str:
    """Return a native location as ``file:line:column``, without what a terminal obeys; "" where it has none.

    Args:
        native: The location.
        name: What to call a source that has no name of its own.
    """
    match = re.search(_LOCATION, str(native))
    if match is None:
        return ""
    file, line, column = match.groups()
    return escape_controls(f"{name if file == '-' else file}:{line}:{column}")


def scope_text(native: object) -> str:
    """Return the name of a native location, without the names of the frames of a call stack; "" where it has none.

    Args:
        native: The location.
    """
    match = re.match(_SCOPE, str(native))
    return "" if match is None else match[1]


def diagnostics_of(error: ir.MLIRError, code: str, name: str = "-") -> Iterator[Diagnostic]:
    """Yield the errors MLIR reported, with locations in our notation; one without a file is called by its name."""
    for item in error.error_diagnostics:
        location = location_text(item.location, name) or scope_text(item.location)
        notes = [note.message for note in item.notes if not note.message.startswith(_NOISE)]
        subject = re.match(_SUBJECT, item.message)
        yield Diagnostic(
            code,
            item.message[subject.end() :] if subject else item.message,
            location=location,
            op=subject.group(1) if subject else "",
            hint="; ".join(notes),
        )


def convert_error(
    error: ir.MLIRError, class_: type[ShardyError], code: str, name: str = "-", *, hint: str = ""
) -> ShardyError:
    """Return MLIR's error as one of ours, with a hint in the place of MLIR's notes if there is one."""
    found = list(diagnostics_of(error, code, name)) or [Diagnostic(code, str(error), location=name)]
    return class_(*(evolve(item, hint=hint or item.hint) for item in found))
