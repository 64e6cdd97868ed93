"""The report on copies of constants."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shardy_py.ir.constant_copies import ConstantCopy


def copies_data(copies: Sequence[ConstantCopy]) -> list[dict[str, Any]]:
    """Return the copies as plain data."""
    return [
        {
            "op": item.op,
            "location": item.location,
            "type": item.type,
            "reason": item.reason.name.lower(),
            "user": item.user,
            "user_location": item.user_location,
            "operand": item.operand,
            "through": item.through or None,
            "original": item.original,
            "sharding": None if item.sharding is None else str(item.sharding),
            "outcome": item.outcome,
        }
        for item in copies
    ]


def print_copies(copies: Sequence[ConstantCopy], *, file: IO[str] | None = None) -> None:
    """Print each op that was copied per use with the reason, and a line for each copy."""
    console = Console(file=file)
    if not copies:
        console.print("No constant was copied per use.")
        return
    table = Table(box=box.SIMPLE_HEAD, title="Copies per use", title_justify="left")
    for title in ("op, and who got a copy", "where", "why, and the sharding", "in the end"):
        table.add_column(title, no_wrap=title == "in the end", overflow="fold")
    for _, group in groupby(copies, key=lambda item: item.original):
        own = list(group)
        left = sum(item.outcome == "kept" for item in own)
        head = (f"{own[0].op} {own[0].type}", own[0].location, own[0].reason.value, f"{left} of {len(own)} kept")
        table.add_row(*map(Text, head))
        for item in own:
            table.add_row(*map(Text, _row(item)))
    console.print(table)


def _row(item: ConstantCopy) -> tuple[str, str, str, str]:
    through = f", through {item.through}" if item.through else ""
    sharding = "replicated" if item.sharding is None else str(item.sharding)
    return f"  {item.user}, operand {item.operand}{through}", item.user_location, sharding, item.outcome
