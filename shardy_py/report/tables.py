"""Reports as tables on a terminal."""

from __future__ import annotations

from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shardy_py.api.coverage import Coverage
from shardy_py.api.result import Result
from shardy_py.api.summary import Summary
from shardy_py.plugins import Registry
from shardy_py.report.text import format_bytes


def print_report(result: Result, *, file: IO[str] | None = None) -> None:
    """Print the summary, and the ops without a rule where there are any."""
    console = Console(file=file)
    console.print(_summary_table(result.summary, result.coverage))
    if not result.coverage.is_complete:
        console.print(_coverage_table(result.coverage))


def print_plugins(registry: Registry, *, file: IO[str] | None = None) -> None:
    """Print the plugins of a registry, and what is wrong with the broken ones."""
    console = Console(file=file)
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("plugin", "from", "status", "dialects", "ops"):
        table.add_column(heading, overflow="fold")
    for plugin in registry.plugins:
        cells = (plugin.name, plugin.origin or plugin.source, plugin.status, ", ".join(plugin.dialects))
        table.add_row(*map(Text, (*cells, str(plugin.ops))))
    console.print(table)
    for plugin in registry.plugins:
        given = {
            "traits": plugin.traits,
            "types": plugin.types,
            "passes": plugin.passes,
            "priorities": plugin.priorities,
            "frontends": plugin.frontends,
        }
        for what, items in given.items():
            if items:
                console.print(Text(f"{plugin.name} {what}: {', '.join(map(str, items))}"))
    for problem in registry.problems:
        console.print(Text(problem.show("warning" if problem in registry.notices else "error")))


def _summary_table(summary: Summary, coverage: Coverage) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_header=False, title="Propagated", title_justify="left")
    table.add_column(justify="left")
    table.add_column(justify="right")
    rows = [
        ("ops", f"{summary.ops}"),
        ("tensors", f"{summary.values}"),
        ("  with a sharding", f"{summary.values_with_sharding}"),
        ("  sharded along an axis", f"{summary.values_sharded}"),
        *((f'  along "{name}"', f"{count}") for name, count in summary.axes_used),
        ("reshards", f"{summary.reshards}"),
        ("parameter bytes", format_bytes(summary.parameter_bytes)),
        ("  per device", format_bytes(summary.parameter_bytes_per_device)),
        ("ops with a rule", f"{coverage.covered} of {coverage.ops}"),
    ]
    for name, number in rows:
        table.add_row(Text(name), Text(number))
    return table


def _coverage_table(coverage: Coverage) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="Ops without a sharding rule", title_justify="left")
    # A name or a place that is cut cannot be looked for.
    table.add_column("op", overflow="fold")
    table.add_column("times", justify="right")
    table.add_column("tensors left unsharded", justify="right")
    table.add_column("first at", overflow="fold")
    for item in coverage.missing:
        table.add_row(*map(Text, (item.name, str(item.count), str(item.unsharded), item.location)))
    return table
