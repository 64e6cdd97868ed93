"""Reports as tables on a terminal: ops without a rule, plugins, copies of constants."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import IO

from shardy_py.api.coverage import Coverage
from shardy_py.plugins import Registry
from shardy_py.report.terminal import NOTE, open_console, print_lines, print_table
from shardy_py.transforms.constant_copies import ConstantCopy


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
        contents = {
            "traits": plugin.traits,
            "types": plugin.types,
            "passes": plugin.passes,
            "priorities": plugin.priorities,
            "frontends": plugin.frontends,
        }
        for what, items in contents.items():
            if items:
                print_lines(console, [f"{plugin.name} {what}: {', '.join(map(str, items))}"])
    for problem in registry.problems:
        print_lines(console, problem.show("warning").split("\n"), NOTE)


def print_copies(copies: Sequence[ConstantCopy], *, file: IO[str] | None = None) -> None:
    """Print each op that was copied per use with the reason, and a line for each copy."""
    console = open_console(file)
    if not copies:
        console.print("No constant was copied per use.")
        return
    headings = ("op, and its users", "where", "reason, and the sharding", "in the end")
    rows: list[Sequence[str]] = []
    for _, group in groupby(copies, key=lambda item: item.original):
        copies_of_op = list(group)
        count = sum(item.outcome == "kept" for item in copies_of_op)
        head = (
            f"{copies_of_op[0].op} {copies_of_op[0].type}",
            copies_of_op[0].location,
            copies_of_op[0].reason.value,
            f"{count} of {len(copies_of_op)} kept",
        )
        rows.extend((head, *map(_row, copies_of_op)))
    print_table(console, "Copies per use", headings, [rows], words=headings)


def _row(item: ConstantCopy) -> tuple[str, str, str, str]:
    through = f", through {item.through}" if item.through else ""
    sharding = "replicated" if item.sharding is None else str(item.sharding)
    return f"  {item.user}, operand {item.operand}{through}", item.user_location, sharding, item.outcome
