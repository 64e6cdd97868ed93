"""``shardy advise``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import click

from shardy_py.api.keywords import keywords
from shardy_py.cli.files import STDOUT, print_warnings, write_output
from shardy_py.cli.origin import origin_of
from shardy_py.cli.progress import progress_bar
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.advice.advise import advise, write_advised
from shardy_py.cost.commands.run_cost import parse_axis_links
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.report.advice import advice_json, print_advice, print_layouts
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.extensions import function

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
    resolved_machine = None if machine is None else get_machine(machine)
    memory = None if budget_memory is None else parse_size(budget_memory)
    program = GivenProgram.of(**session_options)
    if inputs:
        advice = function("advise_inputs")(
            **keywords(program.input),
            machine=resolved_machine,
            minimise=minimise or "time",
            budget_memory=memory,
            options=program.options,
        )
        _report(program, advice, print_layouts, advice.text, output, as_json=as_json)
        return
    with progress_bar("Advising", total=trials) as progress:
        advice = advise(
            **keywords(program.input),
            machine=resolved_machine,
            axes=parse_axis_links(axes) or None,
            schedule=None if schedule is None else schedule_argument(schedule),
            minimise=minimise,
            budget_memory=memory,
            trials=trials,
            limit=limit,
            options=program.options,
            progress=progress,
        )
    text = "" if output is None else write_advised(program.input, advice.shardings, program.options)
    _report(program, advice, print_advice, text, output, as_json=as_json)
    if advice.problem is not None:
        raise OptionError(advice.problem)


def _report(
    program: GivenProgram,
    advice: Any,
    print_it: Callable[..., None],
    text: str,
    output: str | None,
    *,
    as_json: bool,
) -> None:
    """Print advice, and write the program with it."""
    print_warnings(advice.warnings)
    if output is not None:
        write_output(output, text)
    if as_json:
        click.echo(advice_json(advice, origin=origin_of(program)))
    else:
        print_it(advice, file=sys.stderr if output == STDOUT else sys.stdout)


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
