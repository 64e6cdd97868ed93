"""Options that several commands of ``shardy`` have; those of a propagation come from `shardy_py.api.options`."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

import attrs
import click

from shardy_py.api.keywords import help_of
from shardy_py.api.options import LIKES, STRATEGIES, LocalOptions, Options, ProgramInput, ProgramOptions
from shardy_py.transforms.upstream import UPSTREAM

Command = Callable[..., Any]
FORMS = ("xla", "gspmd")
"""The compilers that ``--for`` names."""
LAYOUTS = ("tpu-v5e", "row-major")
RANDOM_INPUTS = "random"
MEASURES = ("time", "bytes", "memory")
PARTITIONERS = ("shardy_py", "xla")
"""The partitioners, which decide how data moves between devices: that of local programs, and XLA's."""
_RULE_OPTIONS = ("extended_rules", "conservative")
SCHEDULE = "The order of ops: a TOML file, or the name of a built-in schedule."


class Amount(click.FloatRange):
    """A number from zero on; NaN is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


AMOUNT = Amount(min=0)
"""The type of times and tolerances."""


def option_of(class_: type, name: str, *flags: str, **settings: Any) -> Callable[[Command], Command]:
    """Return the option for a field of an attrs class, with the default and the help of the field.

    The flag of a field that is true by default has a second form, which begins with ``--no-`` and turns it off.

    Args:
        class_: The class.
        name: The name of the field, and of the parameter of the command.
        flags: The flags; by default one after the name of the field.
        settings: Settings of click; the help is the first sentence of the field's.
    """
    field = attrs.fields_dict(class_)[name]
    if isinstance(field.default, bool):
        settings = {"is_flag": True, "default": field.default, **settings}
    elif isinstance(field.default, (int, str)):
        settings = {"default": field.default, "show_default": True, **settings}
    text = help_of(class_).get(name, "").replace("``", "").partition(". ")[0].partition(";")[0].rstrip(".")
    settings = {"help": f"{text}.", **settings}
    names = flags or (f"--{name.replace('_', '-')}",)
    if settings.get("is_flag") and settings.get("default") is True:
        names = tuple(f"{flag}/--no-{flag.removeprefix('--')}" for flag in names)
    return click.option(*names, name, **settings)


def strategy_option(choices: tuple[str, ...] = STRATEGIES) -> Callable[[Command], Command]:
    """Return the option that chooses the strategy."""
    return option_of(
        ProgramOptions, "strategy", type=click.Choice(choices), help="How ops propagate; each includes those before it."
    )


def schedule_option() -> Callable[[Command], Command]:
    """Return the option that gives one schedule."""
    return click.option("--schedule", metavar="FILE", help=SCHEDULE)


def partitioner_option(text: str) -> Callable[[Command], Command]:
    """Return the option that chooses the partitioner.

    Args:
        text: Its help.
    """
    return click.option("--partitioner", type=click.Choice(PARTITIONERS), help=text)


def run_options(inputs: str, compare: str, when: str = "") -> Callable[[Command], Command]:
    """Return the options of a run: its inputs, and the treatment of its results.

    Args:
        inputs: What the inputs are, for the help.
        compare: The help of ``--compare``.
        when: Under which condition the options count, for the help.
    """
    options = (
        click.option(
            "--inputs",
            default=RANDOM_INPUTS,
            show_default=True,
            metavar="random|FILE.npz",
            help=f"{when}{inputs}: made up, or arg0, arg1 and so on of a file of numpy.",
        ),
        click.option(
            "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="The seed of made-up inputs."
        ),
        click.option("--compare", is_flag=True, help=f"{when}{compare}; exit with 1 where results differ."),
        click.option(
            "--tolerance",
            type=AMOUNT,
            help="The largest relative difference of floats; by default 0.002 for f32, by dtype for others.",
        ),
        click.option(
            "--outputs",
            metavar="FILE.npz",
            type=click.Path(),
            help="Write the results to this file of numpy.",
        ),
    )
    return lambda command: _add(command, *reversed(options))


def plugin_choice(command: Command) -> Command:
    """Add the options that choose plugins."""
    return _add(
        command,
        option_of(ProgramOptions, "strict_plugins"),
        option_of(ProgramOptions, "blocked", "--block-plugin", multiple=True, metavar="NAME"),
        option_of(
            ProgramOptions,
            "plugins",
            "--plugin",
            multiple=True,
            metavar="FILE",
            type=click.Path(exists=True),
            help="A Python file, or a package, with hooks; besides the installed plugins.",
        ),
    )


def plugin_options(command: Command) -> Command:
    """Add the options that choose plugins and rules."""
    return plugin_choice(_add(command, *(option_of(ProgramOptions, name) for name in _RULE_OPTIONS)))


def module_options(command: Command) -> Command:
    """Add the options that say how a module is read."""
    return click.option(
        "--untrusted", is_flag=True, help="Read FILE in a process of its own without rights, which it may crash."
    )(command)


def mesh_options(command: Command) -> Command:
    """Add the options that give a module its mesh and the shardings of its arguments and results."""
    return _add(
        command,
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
        click.option(
            "--size",
            "sizes",
            multiple=True,
            metavar="DIMENSION=SIZE",
            help="The size of a dynamic dimension: arg0.0=64, or '?=64' for all others. May be repeated.",
        ),
        click.option("--mesh", metavar="AXES", help="The mesh of a module without one: data=4,model=2."),
    )


def program_options(command: Command, *, strategies: tuple[str, ...]) -> Command:
    """Add the options for the program, and for how it is propagated."""
    command = _add(
        command,
        click.option(
            "--format",
            "format_name",
            metavar="FRONTEND",
            help="Read FILE by this frontend, also from stdin: mlir, onnx, or that of a plugin.",
        ),
    )
    command = _add(command, option_of(ProgramInput, "like", type=click.Choice(LIKES)))
    command = _add(command, *(option_of(ProgramOptions, name) for name in _flags()), strategy_option(strategies))
    return mesh_options(plugin_options(module_options(command)))


def _flags() -> list[str]:
    """Return the names of the options of a propagation that are flags, without those about plugins and rules."""
    names = [item.name for item in attrs.fields(ProgramOptions) if isinstance(item.default, (bool, int, str))]
    return [name for name in names if name not in (*_RULE_OPTIONS, "strategy", "strict_plugins")]


def session_options(command: Command) -> Command:
    """Add the options of a program that is solved under schedules."""
    return program_options(command, strategies=STRATEGIES[2:])


def propagate_options(command: Command) -> Command:
    """Add the options of a program that is propagated once, and written."""
    names = ("strict", "keep_sharding_rules", "explicit_collectives")
    command = _add(
        command,
        schedule_option(),
        *(option_of(Options, name) for name in names),
        option_of(Options, "upstream", type=click.Choice(UPSTREAM)),
        option_of(Options, "dump_directory", "--dump-dir", metavar="DIR", type=click.Path()),
        option_of(Options, "record_copies", "--copies", help="Report which constants were copied per use, and why."),
    )
    return program_options(command, strategies=STRATEGIES)


def local_options(command: Command) -> Command:
    """Add the options of local programs."""
    return _add(command, *(option_of(LocalOptions, item.name) for item in attrs.fields(LocalOptions)))


def sweep_options(command: Command) -> Command:
    """Add the options that say on which machine and with how many processes schedules are evaluated."""
    command = _add(
        command,
        click.option("--dask-address", metavar="URL", help="The scheduler of a dask cluster; with --backend dask."),
        click.option(
            "--backend", metavar="NAME", help="A backend of joblib instead of processes: dask, ray or another."
        ),
        click.option("--store", metavar="FILE", type=click.Path(), help="Save what is done here; go on from it."),
        click.option("--layout", metavar="POLICY", help="Count bytes with these layouts: tpu-v5e or row-major."),
        axis_option(),
        click.option("--machine", metavar="NAME|FILE", help="What the program runs on; without, there are no times."),
    )
    return session_options(command)


def axis_option() -> Callable[[Command], Command]:
    """Return the option that puts axes of the mesh on links of the machine."""
    return click.option(
        "--axis",
        "axes",
        multiple=True,
        metavar="AXIS=LINK,..",
        help="The links of the machine that an axis of the mesh runs over. May be repeated; then for all axes.",
    )


def _add(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in options:
        command = option(command)
    return command
