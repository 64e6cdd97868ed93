"""``shardy machines`` and its options."""

from __future__ import annotations

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import needs

_CALIBRATE = ("calibrate",)


@click.command(cls=Command)
@click.argument("file", nargs=-1, type=click.Path())
@click.option("-o", "--output", metavar="OUT", type=click.Path(), help="With calibrate: write the machine, as TOML.")
@click.option("--name", help="With calibrate: the name of the machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@needs(
    "output",
    "name",
    when=lambda parameters: parameters["file"] == _CALIBRATE,
    problem="without a calibration",
    hint="shardy machines calibrate -o mine.toml",
)
def machines(file: tuple[str, ...], output: str | None, name: str | None, as_json: bool) -> None:
    """List the machines that come along, or those of TOML files; `calibrate` measures the devices of JAX here."""
    from shardy_py.cost.commands.run_machines import run_calibrate, run_machines

    if file == _CALIBRATE:
        run_calibrate(output, name or "", as_json=as_json)
    else:
        run_machines(file, as_json=as_json)
