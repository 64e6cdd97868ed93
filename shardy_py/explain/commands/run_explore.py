"""``shardy explore``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from attrs import evolve

from shardy_py.api.keywords import keywords
from shardy_py.api.options import SessionArguments
from shardy_py.cli.files import STDOUT, print_warnings, write_output
from shardy_py.cli.progress import step_bar
from shardy_py.cli.registry import schedule_argument
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.commands.sweep_progress import sweep_progress
from shardy_py.cost.machines.toml import get_machine
from shardy_py.cost.sweeps.comparison import Comparison, compare_schedules
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.explain.explore.explore import ExploreOptions, explore
from shardy_py.explain.explore.model_explorer import GRAPH_FILE, NODE_DATA_FILE, model_explorer_files
from shardy_py.explain.explore.variants import Variant
from shardy_py.schedule.builtin import BUILTIN


def run_explore(
    *,
    file: str,
    output: str | None,
    model_explorer: str | None,
    schedule: str | None,
    against: str | None,
    variants: tuple[str, ...],
    sweep: bool,
    random: int,
    machine: str | None,
    proposals: int,
    **session_options: Any,
) -> None:
    """Write the page of a program, or its graph for Model Explorer."""
    if output is None and model_explorer is None:
        message = "there is nothing to write"
        raise OptionError(Diagnostic("option-conflict", message, hint="give -o page.html, or --model-explorer DIR"))
    resolved_machine = None if machine is None else get_machine(machine)
    program = GivenProgram.of(file=file, **session_options)
    arguments = SessionArguments(**keywords(program.input), **program.options.run_options())
    options = ExploreOptions(
        schedule=None if schedule is None else schedule_argument(schedule),
        against=None if against is None else schedule_argument(against),
        variants=tuple(Variant(Path(variant).stem, Path(variant)) for variant in variants),
        machine=resolved_machine,
        proposals=proposals,
        sweep=_sweep(program, resolved_machine, random) if sweep else None,
        title="stdin" if file == "-" else Path(file).name,
    )
    with step_bar(options.step_count) as steps:
        page = explore(arguments, evolve(options, on_step=steps.start))
        html = page.html if output is not None else ""
    print_warnings(page.warnings)
    if output is not None:
        write_output(output, html)
        if output != STDOUT:
            click.echo(f"wrote {output}: {Path(output).stat().st_size // 1024} KiB")
    if model_explorer is not None:
        graph, node_data = model_explorer_files(page.data)
        folder = Path(model_explorer)
        folder.mkdir(parents=True, exist_ok=True)
        write_output(str(folder / GRAPH_FILE), graph)
        write_output(str(folder / NODE_DATA_FILE), node_data)
        click.echo(f"wrote {folder / GRAPH_FILE} and {folder / NODE_DATA_FILE}")


def _sweep(program: GivenProgram, machine: Any, random: int) -> Comparison:
    """Return the costs of all built-in schedules, and of random ones."""
    with sweep_progress("Comparing", total=len(BUILTIN) + random) as progress:
        return compare_schedules(
            **keywords(program.input),
            machine=machine,
            random=random,
            options=program.options,
            jobs=1,
            progress=progress,
        )
