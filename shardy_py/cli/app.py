"""The command ``shardy``: a command for each file of `shardy_py.cli.commands`."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import click

from shardy_py.cli import commands
from shardy_py.cli.errors import ErrorsAsMessages
from shardy_py.cli.help import WholeWordsContext

_WHOLE = 10_000
"""More characters than any sentence has; click cuts those that are longer."""


class CommandsInFiles(ErrorsAsMessages):
    """A group that imports the file of a command when the command is asked for."""

    context_class = WholeWordsContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(_files())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, the whole sentence, in as many lines as that takes."""
        rows = [
            (name, command.get_short_help_str(_WHOLE))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None where there is none of the name."""
        file = _files().get(cmd_name)
        if file is None:
            return None
        command: click.Command = getattr(import_module(f"{commands.__name__}.{file}"), file)
        return command


def _files() -> dict[str, str]:
    """Return the names of the files by the names of their commands."""
    return {info.name.replace("_", "-"): info.name for info in pkgutil.iter_modules(commands.__path__)}


@click.group(cls=CommandsInFiles, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="shardy_py")
def shardy() -> None:
    """Work out a sharding for every tensor of a program."""
