"""A program that a session was opened with, read again with a change of it: as a session, and as text."""

from __future__ import annotations

from collections.abc import Callable

from attrs import fields

from shardy_py.api.annotated_text import annotated_text
from shardy_py.api.keywords import keywords, narrow
from shardy_py.api.options import ProgramInput, SessionArguments
from shardy_py.api.run_input import make_semantics
from shardy_py.cost.session import Session
from shardy_py.ir.graph.program import Op, Program

ProgramChange = Callable[[Program, Op], None]
"""Changes a program and its main function, as they are before any pass."""


def session_arguments(program_input: ProgramInput) -> SessionArguments:
    """Return the arguments of `Session.open` among those of another function, such as `propagate`."""
    values = keywords(program_input)
    names = [item.name for item in fields(SessionArguments) if item.name in values]
    return SessionArguments(**{name: values[name] for name in names})


def open_changed(source: SessionArguments, change: ProgramChange) -> Session:
    """Return the session of a program with a change.

    Args:
        source: What its session was opened with.
        change: The change.

    Raises:
        ShardyError: the changed program is not valid.
    """

    def on_given(program: Program, main: Op) -> None:
        if source.on_given is not None:
            source.on_given(program, main)
        change(program, main)

    return Session.open(**{**keywords(source), "on_given": on_given})


def changed_text(source: SessionArguments, change: ProgramChange) -> str:
    """Return the text of a program with a change.

    Args:
        source: What its session was opened with.
        change: The change.

    Raises:
        ShardyError: the module is not valid.
    """
    registry = make_semantics(source, source.registry)
    return annotated_text(narrow(source, ProgramInput), registry, lambda read: change(read.program, read.main))
