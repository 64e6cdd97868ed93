"""Writes the table of keys in docs/reference/machines.md from the values of machines: ``python -m tests.docs``."""

from __future__ import annotations

from pathlib import Path

from attrs import NOTHING, fields_dict

from shardy_py.api.keywords import help_of
from shardy_py.cost.machines.machine import Link, Machine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "machines.md"
BEGIN, END = "<!-- keys: python -m tests.docs -->\n", "<!-- end -->"
LINKS = {"profile": "see [profiles](#profiles)"}
"""The sections about keys."""
_AT_THE_TOP = ("name", "profile")


def page() -> str:
    """Return the text of the page with the table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{_table()}\n{END}{rest.partition(END)[2]}"


def _table() -> str:
    of_device = [name for name in fields_dict(Machine) if name not in (*_AT_THE_TOP, "links")]
    rows = [_row(Machine, name, name) for name in _AT_THE_TOP]
    rows += [_row(Machine, name, f"device.{name}") for name in of_device]
    rows += [_row(Link, name, f"link.{name}") for name in fields_dict(Link)]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows]) + "\n"


def _row(class_: type, name: str, key: str) -> str:
    default = fields_dict(class_)[name].default
    text = help_of(class_)[name].replace("``", "`").rstrip(".")
    link = f"; {LINKS[name]}" if name in LINKS else ""
    return f"| `{key}` | {'' if default is NOTHING else f'`{default}`'} | {text}{link} |"
