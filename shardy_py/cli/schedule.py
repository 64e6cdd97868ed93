"""``shardy schedule``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shardy_py.cli.lines import echo_report
from shardy_py.cli.registry import plugin_registry
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.schedule.builtin import NAMED
from shardy_py.schedule.from_options import ScheduleLike, make_schedule
from shardy_py.schedule.toml import format_schedule


def run_schedule(*, file: str | None, builtin: str | None, as_toml: bool, **registry_options: Any) -> None:
    """Print the schedule that would run."""
    if file is not None and builtin is not None:
        message = "a file and --builtin exclude each other"
        raise OptionError(Diagnostic("option-conflict", message, hint="a file can go on with a built-in one by then"))
    registry = plugin_registry(**registry_options)
    given = schedule_argument(file) if file is not None else builtin
    schedule = make_schedule(given, plugin_priorities=registry.priorities, plugin_traits=registry.trait_names)
    if as_toml:
        click.echo(format_schedule(schedule), nl=False)
    else:
        echo_report(str(schedule))


def schedule_argument(text: str) -> ScheduleLike:
    """Return the schedule of a command line: the name of a built-in one, or else a file."""
    return text if text in NAMED else Path(text)
