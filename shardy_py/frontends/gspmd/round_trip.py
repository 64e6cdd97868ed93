"""Shardings of Shardy that XLA keeps as text, in dictionaries that every compiler hands on."""

from __future__ import annotations

from shardy_py.ir.graph import Program


def read_round_trip(program: Program) -> None:
    """Nothing yet."""
