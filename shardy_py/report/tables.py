"""Reports as tables on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO

from rich import box
from rich.table import Table
from rich.text import Text

from shardy_py.api.coverage import Coverage
from shardy_py.api.result import Result
from shardy_py.api.summary import Summary
from shardy_py.plugins import Registry
from shardy_py.report.terminal import make_table, open_console
from shardy_py.report.text import format_bytes


def print_report(result: Result, *, file: IO[str] | None = None) -> None:
    """Print the summary, and the ops without a rule where there are any."""
    console = open_console(file)
    console.print(_summary_table(result.summary, result.coverage, result.communications))
    if not result.coverage.is_complete:
        rows = [(item.name, str(item.count), str(item.unsharded), item.location) for item in result.coverage.missing]
        headings = ("op", "times", "tensors left unsharded", "first at")
        words = ("op", "first at")
        console.print(make_table(console, "Ops without a sharding rule", headings, [rows], words=words))


def print_plugins(registry: Registry, *, file: IO[str] | None = None) -> None:
    """Print the plugins of a registry, and what is wrong with the broken ones."""
    console = open_console(file)
    headings = ("plugin", "from", "status", "dialects", "ops")
    rows = [
        (plugin.name, plugin.origin or plugin.source, plugin.status, ", ".join(plugin.dialects), str(plugin.ops))
        for plugin in registry.plugins
    ]
    console.print(make_table(console, "", headings, [rows], words=headings))
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


def _summary_table(summary: Summary, coverage: Coverage, communications: Mapping[str, int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_header=False, title="Propagated", title_justify="left")
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    rows = [
        ("ops", f"{summary.ops}"),
        ("tensors", f"{summary.values}"),
        ("  with a sharding", f"{summary.values_with_sharding}"),
        ("  sharded along an axis", f"{summary.values_sharded}"),
        *((f'  along "{name}"', f"{count}") for name, count in summary.axes_used),
        ("communications", f"{sum(communications.values())}"),
        *((f"  {name}", f"{count}") for name, count in communications.items()),
        ("parameter bytes", format_bytes(summary.parameter_bytes)),
        ("  per device", format_bytes(summary.parameter_bytes_per_device)),
        ("ops with a rule", f"{coverage.covered} of {coverage.ops}"),
    ]
    for name, number in rows:
        table.add_row(Text(name), Text(number))
    return table
