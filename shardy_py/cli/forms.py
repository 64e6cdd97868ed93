"""The forms in which a command writes a propagated module."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardy_py.api.result import Result

FORMS = ("xla",)
"""The compilers that ``--for`` names."""


def form_text(result: Result, target: str | None) -> str:
    """Return the text of the module in the form for a compiler, or as propagation leaves it."""
    return result.text if target is None else str(result.for_xla())
