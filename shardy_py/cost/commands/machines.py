"""``shardy machines`` and its options."""

from __future__ import annotations

import click

from shardy_py.cli.command import Command


@click.command(cls=Command)
@click.argument("file", nargs=-1, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def machines(file: tuple[str, ...], as_json: bool) -> None:
    """List the machines that come along, or those of TOML files."""
    from shardy_py.cost.commands.run_machines import run_machines

    run_machines(file, as_json=as_json)
