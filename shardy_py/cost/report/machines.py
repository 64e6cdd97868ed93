"""Machines as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO

import attrs

from shardy_py.cost.machines.machine import Link, Machine
from shardy_py.report.terminal import open_console, print_table

_HEADINGS = ("machine", "devices", "memory", "memory bytes/s", "bf16 FLOP/s", "links")
_WORDS = ("machine", "links")
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def print_machines(machines: Mapping[str, Machine], *, file: IO[str] | None = None) -> None:
    """Print machines by the names that commands take, one line each.

    Args:
        machines: Name to machine.
        file: Where to print, by default stdout.
    """
    console = open_console(file)
    rows = [
        (
            name,
            str(machine.num_devices),
            f"{_decimal(machine.memory_bytes)}B",
            _decimal(machine.memory_bandwidth),
            _decimal(machine.peak("bf16")[0]),
            "\n".join(map(_link, machine.links)),
        )
        for name, machine in machines.items()
    ]
    print_table(console, "Machines, numbers of one device", _HEADINGS, [rows], words=_WORDS)


def machines_json(machines: Mapping[str, Machine]) -> str:
    """Return machines as JSON text, by name; sizes are in bytes, times in seconds."""
    return json.dumps({name: attrs.asdict(machine) for name, machine in machines.items()}, indent=2)


def _link(link: Link) -> str:
    return f"{link.name} {link.size} {link.topology} {_decimal(link.bandwidth)}B/s"


def _decimal(value: float) -> str:
    """Return a number with a decimal prefix, as vendors give them."""
    for scale, prefix in _PREFIXES:
        if value >= scale:
            return f"{value / scale:.4g} {prefix}"
    return f"{value:g} "
