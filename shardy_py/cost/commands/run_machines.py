"""``shardy machines``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from shardy_py.cli.files import write_output
from shardy_py.cost.machines.calibrate import calibrated_machine, machine_toml
from shardy_py.cost.machines.toml import get_machine, machine_names, read_machine
from shardy_py.cost.report.machines import machines_json, print_machines
from shardy_py.jax.measured_devices import measure_devices


def run_machines(files: Sequence[str], *, as_json: bool) -> None:
    """Print the machines of files; without files those that come along.

    Raises:
        OptionError: a file holds no machine.
    """
    from_files = {Path(file).name: read_machine(Path(file)) for file in files}
    machines = from_files or {name: get_machine(name) for name in machine_names()}
    if as_json:
        click.echo(machines_json(machines))
    else:
        print_machines(machines, file=sys.stdout)


def run_calibrate(output: str | None, name: str, *, as_json: bool) -> None:
    """Measure the devices of JAX, and write or print the machine.

    Raises:
        OptionError: JAX is not installed.
    """
    machine = calibrated_machine(measure_devices(), name=name)
    if output is not None:
        write_output(output, machine_toml(machine))
    if as_json:
        click.echo(machines_json({machine.name: machine}))
    elif output is None:
        click.echo(machine_toml(machine), nl=False)
    else:
        print_machines({Path(output).name: machine}, file=sys.stdout)
