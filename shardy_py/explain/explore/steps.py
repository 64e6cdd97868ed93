"""Steps of making a page, for a progress display."""

from __future__ import annotations

from collections.abc import Callable

StepCallback = Callable[[str], None]
"""Receiver of what is done next."""


def tell_nothing(step: str) -> None:
    """Show nothing."""
