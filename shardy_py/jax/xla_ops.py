"""Refusals by XLA of programs with ops that it does not know, told by these ops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shardy_py.errors import Diagnostic, UnsupportedError, WorkerError
from shardy_py.ir.graph.program import Program

_DIALECTS = frozenset(("builtin", "chlo", "func", "mhlo", "sdy", "stablehlo"))
_MOST_NAMES = 5


@contextmanager
def foreign_ops_named(program: Program) -> Iterator[None]:
    """Let a refusal name the ops of a program that may be its cause: those of other dialects than XLA's.

    Raises:
        UnsupportedError: XLA refused the program, and there are such ops.
    """
    try:
        yield
    except (UnsupportedError, WorkerError) as error:
        names = sorted({op.name for op in program.walk() if op.name.partition(".")[0] not in _DIALECTS})
        if not names:
            raise
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        message = f"XLA does not run the program: it has ops of other dialects, {', '.join(names[:_MOST_NAMES])}{more}"
        hint = (
            "give the plugin of these ops FUNCTIONS, one of numpy for each op: then this command runs the program on "
            "virtual devices; in Python 'shardy_py.testing.run_sharded' does"
        )
        raise UnsupportedError(Diagnostic("no-xla-ops", message, hint=hint)) from error
