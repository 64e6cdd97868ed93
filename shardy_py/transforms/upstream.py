"""The versions of upstream whose behaviour is mirrored where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.guards.error_texts import shown

JAXLIB, HEAD = "0.10.2", "head"
UPSTREAM = (JAXLIB, HEAD)
"""Shardy as in jaxlib 0.10.2, and openxla/shardy at a0277a83 of 2026-08-22."""
INLINE_MESHES = ("upstream", "true", "false")
"""The values of an option that puts meshes in the places of their names: as upstream does, always, or never."""


def check_upstream(_: Any, attribute: Any, value: Any) -> None:
    """Check the value of an option.

    Raises:
        OptionError: there is no such version.
    """
    _check(attribute.name, value, UPSTREAM, "unknown-upstream", "a version of upstream")


def check_inline_meshes(_: Any, attribute: Any, value: Any) -> None:
    """Check the value of an option.

    Raises:
        OptionError: it is not one of `INLINE_MESHES`.
    """
    _check(attribute.name, value, INLINE_MESHES, "invalid-option", "a valid value")


def _check(option: str, value: Any, values: Sequence[str], code: str, noun: str) -> None:
    if value not in values:
        message = f"{option} is {shown(value)}, not {noun}"
        raise OptionError(Diagnostic(code, message, hint=f"give {' or '.join(map(repr, values))}"))
