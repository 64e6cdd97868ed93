"""Options that several commands of ``shardy`` have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]
STRATEGIES = ("basic", "aggressive", "op-priority", "user-priority")


INLINE_CALLS = "Put the bodies of functions in the places of their calls first, as XLA does."


def plugin_choice(command: Command) -> Command:
    """Add the options that choose plugins."""
    for option in (
        click.option("--strict-plugins", is_flag=True, help="Stop at any problem of an installed plugin."),
        click.option("--block-plugin", "blocked", multiple=True, metavar="NAME", help="Do not load this plugin."),
        click.option(
            "--plugin",
            "plugins",
            multiple=True,
            metavar="FILE",
            type=click.Path(exists=True),
            help="A Python file, or a package, with hooks; besides the installed plugins.",
        ),
    ):
        command = option(command)
    return command


def plugin_options(command: Command) -> Command:
    """Add the options that choose plugins and rules."""
    for option in (
        click.option("--extended-rules", is_flag=True, help="Rules for ops that the reference leaves without one."),
        click.option("--conservative", is_flag=True, help="Leave out factors that could be sharded unevenly."),
    ):
        command = option(command)
    return plugin_choice(command)


def module_options(command: Command) -> Command:
    """Add the options that say how a module is read."""
    return click.option("--untrusted", is_flag=True, help="Parse FILE in a process of its own, which it may crash.")(
        command
    )


def mesh_options(command: Command) -> Command:
    """Add the options that give a module its mesh and the shardings of its arguments and results."""
    for option in (
        click.option(
            "--in-sharding",
            "in_shardings",
            multiple=True,
            metavar="ARG=SHARDING",
            help="The sharding of an argument: arg0=data,None or 'arg0=[{\"data\"}, {?}]'. May be repeated.",
        ),
        click.option(
            "--out-sharding",
            "out_shardings",
            multiple=True,
            metavar="RESULT=SHARDING",
            help="The sharding of a result: result0=data,None. May be repeated.",
        ),
        click.option("--mesh", metavar="AXES", help="The mesh of a module without one: data=4,model=2."),
    ):
        command = option(command)
    return command


def session_options(command: Command) -> Command:
    """Add the options that say which program is looked at, and how it is propagated."""
    for option in (
        click.option("--dedup-functions-fully", is_flag=True, help="Let all calls of a function share its shardings."),
        click.option("--inline-calls", is_flag=True, help=INLINE_CALLS),
        click.option("--strategy", type=click.Choice(STRATEGIES[2:]), default="user-priority", show_default=True),
    ):
        command = option(command)
    return mesh_options(plugin_options(module_options(command)))


def sweep_options(command: Command) -> Command:
    """Add the options that say on which machine and with how many processes schedules are evaluated."""
    for option in (
        click.option("--dask-address", metavar="URL", help="The scheduler of a dask cluster; with --backend dask."),
        click.option("--backend", metavar="NAME", help="Another backend of joblib than processes: dask, ray, ..."),
        click.option("--store", metavar="FILE", type=click.Path(), help="Save what is done here; go on from it."),
        click.option("--layout", metavar="POLICY", help="Count bytes with these layouts: tpu-v5e or row-major."),
        click.option(
            "--axis",
            "axes",
            multiple=True,
            metavar="AXIS=LINK,..",
            help="The links of the machine that an axis of the mesh runs over. May be repeated; then for all axes.",
        ),
        click.option("--machine", metavar="NAME|FILE", help="What the program runs on; without, there are no times."),
    ):
        command = option(command)
    return session_options(command)
