"""``shardy check`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.options import module_options


@click.command(cls=Command)
@click.argument("plugin", type=click.Path())
@click.argument("programs", nargs=-1, type=click.Path())
@module_options
@click.option("--trials", default=4, show_default=True, type=click.IntRange(min=0), help="Shardings of each program.")
@click.option("--seed", default=0, show_default=True, help="The seed of operands and shardings.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(**options: Any) -> None:
    """Check the ops of PLUGIN by what they compute: a Python file, a package, or a name.

    The plugin has a dictionary FUNCTIONS, from names of ops to functions on arrays of numpy. Each op runs on shards
    alone, and in PROGRAMS under random shardings. The exit code is 1 where a rule or a local form is wrong.
    """
    from shardy_py.testing.commands.run_check import run_check

    run_check(**options)
