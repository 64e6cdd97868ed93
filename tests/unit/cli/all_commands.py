"""All commands of ``shardy``, those in groups too."""

from __future__ import annotations

import click

from shardy_py.cli.app import shardy


def all_commands(group: click.Group = shardy, prefix: str = "") -> dict[str, click.Command]:
    """Return the commands by their words, such as ``mpmd simulate``."""
    context = click.Context(group)
    commands: dict[str, click.Command] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        words = f"{prefix}{name}"
        commands |= all_commands(command, f"{words} ") if isinstance(command, click.Group) else {words: command}
    return commands
