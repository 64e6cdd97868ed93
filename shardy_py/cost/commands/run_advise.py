"""``shardy advise``."""

from __future__ import annotations

import re
import sys
from typing import Any

import click

from shardy_py.api.keywords import keywords, narrow
from shardy_py.cli.files import print_warnings, write_atomically
from shardy_py.cli.origin import origin_of
from shardy_py.cli.progress import progress_bar
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.advice.advise import advise, write_advised
from shardy_py.cost.advice.advise_inputs import advise_inputs
from shardy_py.cost.advice.arguments import AdviseArguments, AdviseInputsArguments
from shardy_py.cost.advice.constraints import Advice
from shardy_py.cost.advice.layouts import InputAdvice
from shardy_py.cost.commands.run_cost import parse_axis_links
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.report.advice import advice_json, print_advice, print_layouts
from shardy_py.errors import Diagnostic, OptionError

_SIZE = re.compile(r"(\d+(?:\.\d*)?(?:[eE]\d+)?) *([KMGT]i?)?B?")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def run_advise(
    *,
    machine: str | None,
    axes: tuple[str, ...],
    schedule: str | None,
    minimise: Any,
    budget_memory: str | None,
    trials: int,
    inputs: bool,
    limit: int,
    output: str | None,
    as_json: bool,
    **session_options: Any,
) -> None:
    """Print advice for one program."""
    known = None if machine is None else get_machine(machine)
    links = parse_axis_links(axes) or None
    memory = None if budget_memory is None else parse_size(budget_memory)
    program = GivenProgram.of(**session_options)
    if inputs and output is not None:
        message = "--inputs and -o exclude each other"
        raise OptionError(Diagnostic("option-conflict", message, hint="give a layout by --in-sharding to propagate"))
    with progress_bar("Advising", total=trials) as progress:
        arguments = AdviseArguments(
            **keywords(program.input),
            machine=known,
            axes=links,
            schedule=None if schedule is None else schedule_argument(schedule),
            minimise=minimise,
            budget_memory=memory,
            trials=trials,
            limit=limit,
            options=program.options,
            progress=progress,
        )
        advice: Advice | InputAdvice
        advice = (
            advise_inputs(**keywords(narrow(arguments, AdviseInputsArguments)))
            if inputs
            else advise(**keywords(arguments))
        )
    print_warnings(advice.warnings)
    if output is not None and isinstance(advice, Advice):
        write_atomically(output, write_advised(program.input, advice.shardings, program.options))
    if as_json:
        click.echo(advice_json(advice, origin=origin_of(program)))
    elif isinstance(advice, Advice):
        print_advice(advice, file=sys.stdout)
    else:
        print_layouts(advice, file=sys.stdout)
    if advice.problem is not None:
        raise OptionError(advice.problem)


def parse_size(text: str) -> float:
    """Return the bytes of a size such as ``16GiB``, ``500MB`` or ``1e9``.

    Raises:
        OptionError: it has another form.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        message = f"--budget-memory: {text!r} is not a valid size"
        raise OptionError(Diagnostic("invalid-budget", message, hint="--budget-memory 16GiB"))
    unit = match[2] or ""
    base = 1024.0 if unit.endswith("i") else 1000.0
    return float(match[1]) * base ** _POWERS[unit.removesuffix("i")]
