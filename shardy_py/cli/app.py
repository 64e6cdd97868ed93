"""The command ``shardy``: a command for each file of `shardy_py.cli.commands`."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import click

from shardy_py.cli import commands
from shardy_py.cli.errors import ErrorsAsMessages


class CommandsInFiles(ErrorsAsMessages):
    """A group that imports the file of a command when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted(_files())

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
