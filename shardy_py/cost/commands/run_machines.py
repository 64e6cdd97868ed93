"""``shardy machines``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from shardy_py.cost.machines.toml import get_machine, machine_names, read_machine
from shardy_py.cost.report.machines import machines_json, print_machines


def run_machines(files: Sequence[str], *, as_json: bool) -> None:
    """Print the machines of files; without files those that come along."""
    from_files = {Path(file).name: read_machine(Path(file)) for file in files}
    known = from_files or {name: get_machine(name) for name in machine_names()}
    if as_json:
        click.echo(machines_json(known))
    else:
        print_machines(known, file=sys.stdout)
