"""``shardy study`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="OUT",
    type=click.Path(),
    help="Write the table here, as .csv, .json, .tex or .parquet; may be repeated. By default CSV to stdout.",
)
@click.option("--plot", metavar="OUT", type=click.Path(), help="Draw the table, .svg, .pdf or .png.")
@click.option("--store", metavar="DIR", type=click.Path(), help="What is done; by default the file's name with .study.")
@click.option("--jobs", type=click.IntRange(min=-1), help="Processes; by default one per core.")
@click.option("--backend", metavar="NAME", help="A backend of joblib instead of processes: dask, ray or another.")
@click.option("--dask-address", metavar="URL", help="The scheduler of a dask cluster; with --backend dask.")
def study(**options: Any) -> None:
    """Evaluate the programs, schedules, meshes, machines and seeds that FILE names, and write one table."""
    from shardy_py.cost.commands.run_study import run_study_command

    run_study_command(**options)
