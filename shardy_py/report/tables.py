"""Reports as tables on a terminal."""

from __future__ import annotations

from typing import IO

from shardy_py.api.coverage import Coverage
from shardy_py.plugins import Registry
from shardy_py.report.terminal import NOTE, open_console, print_lines, print_table


def print_missing(coverage: Coverage, *, file: IO[str] | None = None) -> None:
    """Print the ops without a rule."""
    console = open_console(file)
    rows = [(item.name, str(item.count), str(item.unsharded), item.location) for item in coverage.missing]
    headings = ("op", "times", "tensors left unsharded", "first at")
    words = ("op", "first at")
    print_table(console, "Ops without a sharding rule", headings, [rows], words=words)


def print_plugins(registry: Registry, *, file: IO[str] | None = None) -> None:
    """Print the plugins of a registry, and their problems: warnings, as in a run."""
    console = open_console(file)
    headings = ("plugin", "from", "status", "dialects", "ops")
    rows = [
        (plugin.name, plugin.origin or plugin.source, plugin.status, ", ".join(plugin.dialects), str(plugin.ops))
        for plugin in registry.plugins
    ]
    print_table(console, "", headings, [rows], words=headings)
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
                print_lines(console, [f"{plugin.name} {what}: {', '.join(map(str, items))}"])
    for problem in registry.problems:
        print_lines(console, problem.show("warning").split("\n"), NOTE)
