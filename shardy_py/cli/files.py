"""Input and output of commands: files, reports as lines on stdout, warnings and other diagnostics on stderr.

Lines are whole in a pipe and folded on a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.report.terminal_text import terminal_lines, terminal_message
from shardy_py.support.files import write_atomically
from shardy_py.support.texts import escape_controls

if TYPE_CHECKING:
    from shardy_py.plugins import Registry

STDIN = STDOUT = "-"
_STDOUT_KEY = f"{__name__}.stdout"


def read_input(
    file: str, *, untrusted: bool = False, registry: Registry | None = None, format_name: str | None = None
) -> Any:
    """Return the source for a frontend: the path, or the bytes of stdin.

    Args:
        file: The name of the file, or a dash.
        untrusted: Whether MLIR's parser runs in a process of its own.
        registry: The registry with the frontends of plugins.
        format_name: The frontend that reads the bytes; None for the one that accepts them.

    Raises:
        OptionError: stdin cannot be read, or there is no such frontend.
        ShardyError: a module of unknown origin is not valid.
    """
    source = read_stdin() if file == STDIN else Path(file)
    if format_name is not None:
        return _read_format(source, file, format_name, registry, untrusted=untrusted)
    if not untrusted:
        return source
    from shardy_py.api.source import read_apart

    return read_apart(source, registry=registry)


def _read_format(
    source: bytes | Path, file: str, format_name: str, registry: Registry | None, *, untrusted: bool
) -> Any:
    """Return what a frontend reads from the bytes of a file."""
    from shardy_py.frontends.select import named_frontend
    from shardy_py.frontends.sources import source_bytes
    from shardy_py.plugins.installed import installed_registry

    if untrusted:
        message = "--format and --untrusted exclude each other"
        raise OptionError(Diagnostic("option-conflict", message, hint="give the file the suffix of its format"))
    frontend = named_frontend(format_name, installed_registry() if registry is None else registry)
    data, name = source_bytes(source, file)
    return frontend.from_bytes(data, name=name)


def read_stdin() -> bytes:
    """Return the bytes of stdin.

    Raises:
        OptionError: it is closed, or cannot be read.
    """
    try:
        if sys.stdin is None:
            raise OSError(0, "it is closed")
        return sys.stdin.buffer.read()
    except OSError as error:
        message = f"standard input cannot be read: {error.strerror or error}"
        raise OptionError(Diagnostic("stdin", message, hint="give a file, or pipe the module in")) from None


def write_output(path: str | Path, content: str | bytes) -> None:
    """Write a file, or to stdout where its name is a dash; a file is replaced when its new content is complete.

    Raises:
        OSError: it cannot be written.
        UnicodeEncodeError: the text is not valid Unicode.
    """
    if path == STDOUT:
        ctx = click.get_current_context(silent=True)
        click.echo(content, nl=False, file=sys.stdout if ctx is None else ctx.meta.get(_STDOUT_KEY, sys.stdout))
    else:
        write_atomically(path, content)


@contextmanager
def reports_on_stderr(ctx: click.Context) -> Iterator[None]:
    """Print on stderr what a command prints, so that nothing but its output named - goes to stdout."""
    ctx.meta[_STDOUT_KEY] = sys.stdout
    with redirect_stdout(sys.stderr):
        yield


def echo_report(text: str) -> None:
    """Print a report on stdout."""
    _echo(terminal_lines(text, sys.stdout), sys.stdout)


def echo_diagnostic(text: str) -> None:
    """Print the text of a diagnostic on stderr."""
    if sys.stderr is not None:
        _echo(terminal_message(escape_controls(text), sys.stderr), sys.stderr)


def _echo(text: str, file: IO[str]) -> None:
    # The text has colours only where the file shows them.
    click.echo(text, file=file, color=True)


_PRINTED = f"{__name__}.printed"


def print_warnings(warnings: Iterable[Diagnostic]) -> None:
    """Print warnings on stderr, each once in a run of a command: plugins and programs may warn of the same thing."""
    context = click.get_current_context(silent=True)
    printed: set[Diagnostic] = set() if context is None else context.meta.setdefault(_PRINTED, set())
    for warning in warnings:
        if warning not in printed:
            printed.add(warning)
            echo_diagnostic(warning.show("warning"))
