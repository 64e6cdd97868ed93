"""The commands of ``shardy`` and their options; each command imports its work when it runs."""

from __future__ import annotations

from typing import Any

import click

from shardy_py.cli.app_cost import cost
from shardy_py.cli.app_emit import emit
from shardy_py.cli.app_explain import explain
from shardy_py.cli.app_orderings import ORDERING_COMMANDS
from shardy_py.cli.app_run import run
from shardy_py.cli.errors import ErrorsAsMessages
from shardy_py.cli.forms import FORMS
from shardy_py.cli.options import module_options, plugin_choice, plugin_options, propagate_options

LAYOUTS = ("tpu-v5e", "row-major")


@click.group(cls=ErrorsAsMessages, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="shardy_py")
def shardy() -> None:
    """Work out a sharding for every tensor of a program."""


@shardy.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="OUT", type=click.Path(), help="Write the module here, not to stdout.")
@click.option("--for", "target", type=click.Choice(FORMS), help="Write the module in the form a compiler takes.")
@click.option("--stubs", metavar="OUT", type=click.Path(), help="Write a plugin with a stub for each missing rule.")
@click.option("--graph", metavar="OUT", type=click.Path(), help="Write the def-use graph: .graphml or .json.")
@click.option("--layout", type=click.Choice(LAYOUTS), help="Report the bytes on a device with these layouts.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout; the module with -o only.")
@click.option("-q", "--quiet", is_flag=True, help="Print no table.")
@propagate_options
def propagate(**options: Any) -> None:
    """Propagate shardings through the module in FILE (- for stdin).

    The module goes to stdout or OUT, the table to stderr.
    """
    from shardy_py.cli.propagate import run_propagate

    run_propagate(**options)


@shardy.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@module_options
@plugin_options
def rules(**options: Any) -> None:
    """Print the sharding rule of each op in FILE (- for stdin)."""
    from shardy_py.cli.rules import run_rules

    run_rules(**options)


@shardy.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "--pipeline",
    default="sdy-propagation-pipeline",
    show_default=True,
    help="Passes by their upstream names, separated by commas, with options in braces.",
)
@click.option("--inline-calls", is_flag=True, help="Inline calls first; both sides get the same inlined module.")
@click.option("--limit", default=5, show_default=True, type=click.IntRange(min=1), help="Differences to show.")
@click.option("--timeout", default=600.0, show_default=True, type=float, help="Seconds the C++ passes may take.")
@module_options
def compare_reference(**options: Any) -> None:
    """Run passes over FILE (- for stdin) here and in the C++ of jaxlib, and compare the results.

    The exit code is 0 where they are equal, 1 where they differ.
    """
    from shardy_py.cli.compare_reference import run_compare_reference

    run_compare_reference(**options)


@shardy.command()
@click.argument("file", required=False, type=click.Path())
@click.option("--builtin", metavar="NAME", help="A built-in schedule, by its name.")
@click.option("--toml", "as_toml", is_flag=True, help="Print a TOML file that propagate --schedule takes.")
@plugin_choice
def schedule(**options: Any) -> None:
    """Print the order of ops that runs: by default, by the schedule in FILE, or by a built-in one."""
    from shardy_py.cli.schedule import run_schedule

    run_schedule(**options)


@shardy.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@plugin_choice
def plugins(**options: Any) -> None:
    """List the installed plugins and what became of them."""
    from shardy_py.cli.plugins import run_plugins

    run_plugins(**options)


@shardy.command()
@click.argument("shape")
@click.option("--index", metavar="I,J,..", help="Print only the position of this element in memory.")
@click.option("--bytes", "only_bytes", is_flag=True, help="Print only the exact bytes in memory.")
@click.option("--shard", metavar="AxBx..", help="Take the shape of a shard: each dimension in so many parts.")
@click.option("--policy", type=click.Choice(LAYOUTS), help="Take the layout this policy chooses; print only the shape.")
@click.option("--draw", is_flag=True, help="Draw where each element lies.")
@click.option("--svg", metavar="OUT", type=click.Path(), help="Draw it as an SVG picture.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def layout(**options: Any) -> None:
    """Print the anatomy and the bytes of SHAPE, or of an HLO operation: 'f32[3,5]{1,0:T(2,2)}'."""
    from shardy_py.cli.layout import run_layout

    run_layout(**options)


for _command in (*ORDERING_COMMANDS, explain, cost, run, emit):
    shardy.add_command(_command)
