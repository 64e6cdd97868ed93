"""The versions of upstream whose behaviour is mirrored where they differ."""

from __future__ import annotations

from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.guards.error_texts import shown

JAXLIB, HEAD = "0.10.2", "head"
UPSTREAM = (JAXLIB, HEAD)
"""Shardy as in jaxlib 0.10.2, and openxla/shardy at a0277a83 of 2026-08-22."""


def is_upstream(_: Any, attribute: Any, name: Any) -> None:
    """Check the value of an option.

    Raises:
        OptionError: there is no such version.
    """
    if name not in UPSTREAM:
        message = f"{attribute.name} is {shown(name)}, not a version of upstream"
        raise OptionError(Diagnostic("unknown-upstream", message, hint=f"give {JAXLIB!r} or {HEAD!r}"))
