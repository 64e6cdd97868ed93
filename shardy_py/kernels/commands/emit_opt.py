"""``shardy emit-opt`` and its options."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.command import Command
from shardy_py.cli.needs import Parameters, needs, needs_option
from shardy_py.cli.options import RANDOM_INPUTS, plugin_choice

SPELLINGS = ("xla_gpu", "xla")
_RUNNING = ("as_run", "as_sanitized", "compared", "as_bisected", "as_reduced")


def _is_run(parameters: Parameters) -> bool:
    return any(parameters[name] for name in _RUNNING)


def _prints_module(parameters: Parameters) -> bool:
    return parameters["as_reduced"] or not _is_run(parameters)


@click.command("emit-opt", cls=Command)
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--pass-pipeline",
    "pipeline",
    metavar="TEXT",
    default="",
    help="Passes in order, such as 'inline,cse'; 'kernel-pipeline' are all of them, in the order of 'shardy emit'.",
)
@click.option("--stages", "stages_dir", metavar="DIR", type=click.Path(), help="Write every stage to this folder.")
@click.option("--device-spec", metavar="NAME|FILE", default="h100", show_default=True, help="The device: a TOML file.")
@click.option("--spelling", type=click.Choice(SPELLINGS), default="xla_gpu", show_default=True, help="Names of ops.")
@click.option("--generic", is_flag=True, help="Print every op in MLIR's generic form.")
@click.option("--run", "as_run", is_flag=True, help="Run the module behind the passes, all threads of its grid.")
@click.option("--sanitize", "as_sanitized", is_flag=True, help="Report the faults of the module behind the passes.")
@click.option(
    "--compare",
    "compared",
    nargs=2,
    metavar="STAGE STAGE",
    help="Compare what two stages compute: 'initial', or a pass by name or number.",
)
@click.option("--bisect", "as_bisected", is_flag=True, help="Name the first pass behind which a result differs.")
@click.option("--reduce", "as_reduced", is_flag=True, help="Print the smallest module that is wrong in the same way.")
@click.option("--blocks", metavar="X,Y,Z", help="The blocks, where the module does not say how many.")
@click.option("--threads", metavar="X,Y,Z", help="The threads of a block, where the module does not say how many.")
@click.option(
    "--inputs",
    default="random",
    show_default=True,
    metavar="random|FILE.npz",
    help="The arguments of a run: made up, or arg0, arg1 and so on of a file of numpy.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="The seed of made-up inputs.")
@click.option(
    "--units", default=8.0, show_default=True, type=click.FloatRange(min=0), help="How far floats may differ."
)
@click.option("--outputs", metavar="FILE.npz", type=click.Path(), help="With --run, write the results to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", metavar="OUT", type=click.Path(), help="Write to this file, not to stdout.")
@plugin_choice
@needs(
    "inputs",
    "seed",
    "blocks",
    "threads",
    when=_is_run,
    problem="on a module that does not run",
    hint="give --run, --sanitize, --compare, --bisect or --reduce, too",
)
@needs(
    "seed",
    when=lambda parameters: parameters["inputs"] == RANDOM_INPUTS,
    problem="on inputs of a file",
    hint="leave --seed or --inputs out",
)
@needs(
    "units",
    when=lambda parameters: bool(parameters["compared"] or parameters["as_bisected"] or parameters["as_reduced"]),
    problem="where no results are compared",
    hint="give --compare, --bisect or --reduce, too",
)
@needs_option("--run", "as_run", "outputs")
@needs("spelling", "generic", when=_prints_module, problem="where no module is printed", hint="leave it out")
@needs("as_json", when=_is_run, problem="on a module", hint="leave --json out")
def emit_opt(**options: Any) -> None:
    """Run passes over the kernel module in FILE (- for stdin), and print it, run it, or look for what is wrong."""
    from shardy_py.kernels.commands.run_emit_opt import run_emit_opt

    run_emit_opt(**options)
