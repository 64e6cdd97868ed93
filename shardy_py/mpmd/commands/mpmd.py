"""``shardy mpmd`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command, CommandGroup
from shardy_py.cli.needs import needs
from shardy_py.cli.options import module_options, plugin_choice, session_options


@click.group(cls=CommandGroup)
def mpmd() -> None:
    """Programs over several meshes: pipelines of stages."""


@mpmd.command(cls=Command)
@click.argument("file", required=False, type=click.Path(allow_dash=True))
@click.option("--schedule", metavar="NAME", help="The schedule, without FILE, or search; by default 1F1B.")
@click.option("--meshes", type=int, help="The number of meshes; by default 4.")
@click.option("--microbatches", type=int, help="The number of microbatches; by default 8.")
@click.option("--chunks", type=int, help="The number of stages on each mesh; by default 1.")
@click.option(
    "--times",
    default="F=1,I=1,W=1,transfer=0",
    show_default=True,
    metavar="F=..,I=..,W=..,transfer=..",
    help="Times of a forward part, of gradients of inputs, of weights, and of a transfer.",
)
@click.option("--trace", metavar="FILE", type=click.Path(), help="Write the timeline for Perfetto, as JSON.")
@click.option("--plot", metavar="FILE", type=click.Path(), help="Draw the timeline, as .svg.")
@click.option(
    "--limit", type=float, help="With --schedule search: the most microbatches whose activations a mesh may hold."
)
@click.option(
    "--weight-activations",
    type=float,
    help="With --schedule search: the part of activations that gradients of weights need.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print only the schedule, one mesh a line.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def simulate(**options: Any) -> None:
    """Simulate a pipeline schedule: FILE (- for stdin) with a line of actions per mesh, or --schedule by its name."""
    from shardy_py.mpmd.commands.run_simulate import run_simulate

    run_simulate(**options)


@mpmd.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--meshes", type=int, default=4, show_default=True, help="The number of meshes.")
@click.option(
    "--microbatches", default="8", show_default=True, metavar="M[,M..]", help="The numbers of microbatches to try."
)
@click.option("--machine", required=True, metavar="NAME|FILE", help="The machine whose devices the meshes are.")
@click.option("--budget-memory", metavar="SIZE", help="What a device may use: 16GiB, 500MB; else what it has.")
@click.option("--plan-shardings", is_flag=True, help="Also try the shardings that shardy plan finds for one mesh.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@session_options
def plan(**options: Any) -> None:
    """Cut the forward pass in FILE (- for stdin) into stages, and choose schedule and microbatches by cost."""
    from shardy_py.mpmd.commands.run_plan import run_plan

    run_plan(**options)


@mpmd.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--mesh", "meshes", multiple=True, required=True, metavar="NAME:AXIS=SIZE[,..]", help="A mesh; once for each."
)
@click.option(
    "--assign",
    "assignments",
    multiple=True,
    required=True,
    metavar="NAME@MESH[/STAGE]",
    help="The mesh of a named computation, a function or a scope; once for each.",
)
@click.option("--input", "inputs", multiple=True, metavar="N@MESH", help="The mesh of an argument by its number.")
@click.option("--output", "outputs", multiple=True, metavar="N@MESH", help="The mesh of a result by its number.")
@click.option(
    "--in-sharding",
    "in_shardings",
    multiple=True,
    metavar="ARG=SHARDING",
    help="The sharding of an argument over the axes of the first mesh: arg0=x,None.",
)
@click.option("--schedule", default="1F1B", show_default=True, metavar="NAME", help="The schedule.")
@click.option("--cheapest-transfers", is_flag=True, help="Move values where the fewest bytes move.")
@click.option("--op", metavar="OP", help="Why this op is on its mesh: stablehlo.tanh, %5, model.py:12.")
@click.option("--transfer", type=int, metavar="N", help="Why there is this transfer, and what would remove it.")
@click.option("--limit", default=8, show_default=True, type=click.IntRange(min=0), help="Changes to try.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@module_options
@plugin_choice
@needs(
    "limit",
    when=lambda values: values["transfer"] is not None,
    problem="without --transfer",
    hint="give --transfer N, for which changes are tried",
)
def explain(**options: Any) -> None:
    """Explain on which meshes the ops of the module in FILE (- for stdin) run, and why there are transfers."""
    from shardy_py.mpmd.commands.run_explain import run_explain

    run_explain(**options)
