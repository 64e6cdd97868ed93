"""Commands of click: errors of the package as messages with exit code 2, help in which no word is broken."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from shardy_py.cli.files import STDOUT, echo_diagnostic, reports_on_stderr
from shardy_py.cli.main import report_interrupt
from shardy_py.cli.needs import check_needs
from shardy_py.errors import Diagnostic, OptionError, RuleWarning, ShardyError, did_you_mean
from shardy_py.support.texts import as_error

_WHOLE = 10_000
"""More characters than any sentence has; click cuts those that are longer."""
_PACKAGE = Path(__file__).parents[1]


_HYPHEN = "\ue000"
"""A character for private use that stands for a hyphen while lines are broken, which happens behind hyphens, too."""


class WholeWords(click.HelpFormatter):
    """A formatter that breaks lines at spaces only."""

    def write(self, string: str) -> None:
        """Write text with its hyphens."""
        super().write(string.replace(_HYPHEN, "-"))

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(text.replace("-", _HYPHEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names with their meanings."""
        shown = [(name, text.replace("-", _HYPHEN)) for name, text in rows]
        super().write_dl(shown, col_max=col_max, col_spacing=col_spacing)


class WholeWordsContext(click.Context):
    """A context whose help has whole words."""

    formatter_class = WholeWords


class NamedInput(click.Command):
    """A command whose FILE is named in errors of memory, recursion and overflow."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (MemoryError, RecursionError, OverflowError) as error:
            file = ctx.params.get("file")
            # Without the frames of the error, which hold what uses up the memory.
            problem = as_error(error, file if isinstance(file, str) else "")
        raise problem


class CommandGroup(click.Group):
    """A group of commands whose help has whole words and sentences."""

    context_class = WholeWordsContext

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was asked for; an unknown name is an error with the names that are close."""
        name, known = args[0], self.list_commands(ctx)
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            is_file = bool(Path(name).suffix)
            otherwise = "a command comes before the file" if is_file else f"the commands are {', '.join(known)}"
            ctx.fail(f"No such command {name!r}: {did_you_mean(name, known, otherwise=otherwise)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, the whole sentence, in as many lines as that takes."""
        rows = [
            (name, command.get_short_help_str(_WHOLE))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class ErrorsAsMessages(CommandGroup):
    """A group of commands whose errors end the run with a message."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the options before a command; ``--help`` and ``--version`` write already."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except OSError as error:
            _report_file(error)
            sys.exit(2)
        except KeyboardInterrupt:
            sys.exit(report_interrupt())

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except ShardyError as error:
            for diagnostic in error.diagnostics:
                _report(str(diagnostic))
        except OSError as error:
            _report_file(error)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            ctx.exit(report_interrupt())
        except UnicodeEncodeError as error:
            _report(f"error: the output holds a character that UTF-8 cannot write: {error} [not-unicode]")
        except Exception as error:
            # A defect of this program: the user gets one line that can be reported, not a traceback.
            _report(f"error: internal error at {_place(error)}: {type(error).__name__}: {error} [internal]")
        ctx.exit(2)


def _report_file(error: OSError) -> None:
    if isinstance(error, BrokenPipeError):
        # The reader of our output went away, for example `| head`; the interpreter must not flush into it again.
        sys.stdout = None
        return
    place = f"{error.filename}: error:" if error.filename else "error: input or output:"
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        folder = Path(error.filename).parent
        reason = reason if folder.exists() else f"there is no folder {folder}"
    _report(f"{place} {reason} [file]")


def _report(message: str) -> None:
    try:
        echo_diagnostic(message)
    except OSError:
        # Nobody reads messages; the exit code has to do.
        sys.stderr = None


def _place(error: BaseException) -> str:
    """Return the innermost line of this package that an error passed through."""
    place = "?"
    trace = error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_relative_to(_PACKAGE):
            place = f"{path.relative_to(_PACKAGE.parent)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _writes_to_stdout(command: click.Command, ctx: click.Context) -> bool:
    """Return whether an option names stdout as its file; no more than one may, and neither a folder nor a store.

    Raises:
        OptionError: several do, or a folder or a store.
    """
    options = [option for option in command.params if isinstance(option, click.Option)]
    paths = [option for option in options if isinstance(option.type, click.Path) and not option.type.exists]
    given = [option for option in paths if ctx.params.get(str(option.name)) == STDOUT]
    # A store is read again, a folder has several files.
    for option in given:
        if option.metavar == "DIR" or option.name == "store":
            message = f"{option.opts[-1]} cannot be {STDOUT}, which is stdout"
            raise OptionError(Diagnostic("option-conflict", message, hint=f"give a {option.metavar} of another name"))
    names = [option.opts[-1] for option in given]
    if names and ctx.params.get("as_json"):
        names.append("--json")
    if len(names) > 1:
        hint = f"give {names[0]} a file"
        raise OptionError(Diagnostic("option-conflict", f"{' and '.join(names)} write to stdout", hint=hint))
    return bool(names)


class Command(NamedInput):
    """A command whose help has whole words, and that refuses options without an effect."""

    context_class = WholeWordsContext

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; for an unknown option, those that begin like it are named first."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            names = [name for parameter in self.params for name in parameter.opts]
            longer = [repr(name) for name in names if name.startswith(error.option_name)]
            if not longer:
                raise
            message = f"No such option {error.option_name!r}. Did you mean {' or '.join(longer)}?"
            raise click.NoSuchOption(error.option_name, message, ctx=ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, if every option that was given has an effect, and one of them at most writes to stdout."""
        check_needs(self, ctx)
        with _rule_warnings_as_messages(), reports_on_stderr(ctx) if _writes_to_stdout(self, ctx) else nullcontext():
            return super().invoke(ctx)


@contextmanager
def _rule_warnings_as_messages() -> Iterator[None]:
    """Print what rule functions are warned of while they run as all other warnings, without Python's own words."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_warning(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, RuleWarning):
                echo_diagnostic(str(message))
            else:
                show(message, category, *rest, **more)

        warnings.showwarning = show_warning
        yield
