"""``shardy emit`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import Parameters, needs, needs_option
from shardy_py.cli.options import RANDOM_INPUTS, module_options, plugin_choice

TARGETS = ("mlir", "llvm", "ptx", "sass")
SPELLINGS = ("xla_gpu", "xla")
LEVELS = ("scalar", "tile")


def _is_listed(parameters: Parameters) -> bool:
    return bool(parameters["as_list"] or parameters["as_coverage"])


def _prints_module(parameters: Parameters) -> bool:
    """Return whether the kernel is printed as a module of some target, and not drawn, run or explained."""
    others = ("as_run", "as_time", "as_explanation", "as_tuned", "draw", "page")
    return not _is_listed(parameters) and not any(parameters[name] for name in others)


def _is_printed_or_run(parameters: Parameters) -> bool:
    """Return whether the kernel is printed as a module or run, of which kernels at the level of tiles are capable."""
    is_at_stage = parameters["target"] != "mlir" or parameters["stage"] or parameters["stages_dir"]
    is_module = _prints_module(parameters) and not parameters["as_json"] and not is_at_stage
    return is_module or (parameters["as_run"] and not parameters["stage"])


class DeviceNumber(click.IntRange):
    """The number of a device of the mesh; a name is an error that says which option takes it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        if isinstance(value, str) and not value.lstrip("-").isdigit():
            self.fail(
                f"{value!r} is not the number of a device of the mesh; a GPU is --device-spec {value}", param, ctx
            )
        return super().convert(value, param, ctx)


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--list", "as_list", is_flag=True, help="List the pieces of the program that can be kernels.")
@click.option("--coverage", "as_coverage", is_flag=True, help="Say which ops no kernel has, and why.")
@click.option("--fusion", metavar="N", type=click.IntRange(min=0), help="Take this piece of the list.")
@click.option(
    "--device",
    "shard_device",
    metavar="N",
    type=DeviceNumber(min=0),
    help="Propagate FILE first, and take the program that this device runs on its shards.",
)
@click.option("--target", type=click.Choice(TARGETS), default="mlir", show_default=True, help="What to print.")
@click.option("--stage", metavar="S", help="Print the module after this pass: its number or name, or 'initial'.")
@click.option("--stages", "stages_dir", metavar="DIR", type=click.Path(), help="Write every stage to this folder.")
@click.option("--device-spec", metavar="NAME|FILE", default="h100", show_default=True, help="The device: a TOML file.")
@click.option("--spelling", type=click.Choice(SPELLINGS), default="xla_gpu", show_default=True, help="Names of ops.")
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="scalar",
    show_default=True,
    help="Compute element by element, or a tile at a time in the dialect xtile.",
)
@click.option("--tile-sizes", metavar="SIZES", help="With --level tile, the sizes of a tile: 16,32.")
@click.option("--run", "as_run", is_flag=True, help="Run the kernel on the host, all threads of its grid.")
@click.option("--time", "as_time", is_flag=True, help="Time the kernel on a GPU of this machine.")
@click.option(
    "--against",
    metavar="FILE.ptx",
    type=click.Path(),
    help="With --time, time this PTX for the same fusion and grid beside it.",
)
@click.option(
    "--inputs",
    default="random",
    show_default=True,
    metavar="random|FILE.npz",
    help="With --run and --time, the arguments: made up, or arg0, arg1 and so on of a file of numpy.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="The seed of made-up inputs.")
@click.option("--outputs", metavar="FILE.npz", type=click.Path(), help="With --run, write the results to this file.")
@click.option("--explain", "as_explanation", is_flag=True, help="Say why this emitter, grid and unroll factor.")
@click.option("--tune", "as_tuned", is_flag=True, help="Rank other grids by a model of sectors and latency.")
@click.option("--draw", type=click.Choice(("text", "svg")), help="Draw what a warp reads and writes.")
@click.option("--block", default=0, metavar="N", type=click.IntRange(min=0), help="With --draw, the block.")
@click.option("--warp", default=0, metavar="N", type=click.IntRange(min=0), help="With --draw, the warp of the block.")
@click.option(
    "--page",
    metavar="OUT.html",
    type=click.Path(),
    help="Write a page with all stages, PTX and machine code beside each other, linked by op, and the index maps.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", metavar="OUT", type=click.Path(), help="Write to this file, not to stdout.")
@module_options
@plugin_choice
@needs(
    "inputs",
    "seed",
    when=lambda parameters: parameters["as_run"] or parameters["as_time"],
    problem="on a kernel that does not run",
    hint="give --run or --time, too",
)
@needs(
    "seed",
    when=lambda parameters: parameters["inputs"] == RANDOM_INPUTS,
    problem="on inputs of a file",
    hint="leave --seed or --inputs out",
)
@needs(
    "output",
    when=lambda parameters: parameters["page"] is None,
    problem="on a page, whose file --page names",
    hint="leave -o out",
)
@needs_option("--run", "as_run", "outputs")
@needs_option("--draw", "draw", "block", "warp")
@needs(
    "level",
    when=_is_printed_or_run,
    problem="on what is no module before its passes and no run of one",
    hint="leave --level out, or the other options",
)
@needs(
    "tile_sizes",
    when=lambda parameters: parameters["level"] == "tile",
    problem="without --level tile",
    hint="add --level tile",
)
@needs("target", when=_prints_module, problem="where no module is printed", hint="leave --target out")
@needs(
    "stage",
    when=lambda parameters: parameters["as_run"] or (_prints_module(parameters) and not parameters["as_json"]),
    problem="where no module is printed or run",
    hint="leave --stage out",
)
@needs(
    "stages_dir",
    "spelling",
    when=lambda parameters: not _is_listed(parameters),
    problem="on a list of pieces",
    hint="choose one with --fusion N",
)
@needs(
    "device_spec",
    when=lambda parameters: not parameters["as_coverage"],
    problem="on the coverage, which holds for all devices",
    hint="leave --device-spec out",
)
def emit(**options: Any) -> None:
    """Print the kernel that a GPU would run for the fusion in FILE (- for stdin)."""
    from shardy_py.kernels.commands.run_emit import run_emit

    run_emit(**options)
