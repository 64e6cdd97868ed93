"""The command ``shardy``: a command for each file of `shardy_py.cli.commands`, and those of the leaves."""

from __future__ import annotations

import pkgutil

import click

from shardy_py.cli import commands
from shardy_py.cli.command import ErrorsAsMessages
from shardy_py.extensions import COMMANDS, load


class CommandsInFiles(ErrorsAsMessages):
    """A group that imports the file of a command when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(_entries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None where there is none of the name."""
        entry = _entries().get(cmd_name)
        if entry is None:
            return None
        command: click.Command = load(entry)
        return command


def _entries() -> dict[str, str]:
    """Return where each command is, by its name."""
    files = [info.name for info in pkgutil.iter_modules(commands.__path__)]
    return {**COMMANDS, **{name.replace("_", "-"): f"{commands.__name__}.{name}:{name}" for name in files}}


@click.group(cls=CommandsInFiles, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="shardy_py")
def shardy() -> None:
    """Work out a sharding for every tensor of a program."""
