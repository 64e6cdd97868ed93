"""The command ``shardy``: a command for each file of `shardy_py.cli.commands`."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import click

from shardy_py.cli import commands
from shardy_py.cli.errors import ErrorsAsMessages


@click.group(cls=ErrorsAsMessages, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="shardy_py")
def shardy() -> None:
    """Work out a sharding for every tensor of a program."""


for _info in pkgutil.iter_modules(commands.__path__):
    shardy.add_command(getattr(import_module(f"{commands.__name__}.{_info.name}"), _info.name))
