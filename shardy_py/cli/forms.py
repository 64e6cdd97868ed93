"""The forms in which a command writes a propagated module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardy_py.cli.diagnostics import print_warnings

if TYPE_CHECKING:
    from shardy_py.api.result import Result
    from shardy_py.errors import Diagnostic

FORMS = ("xla", "gspmd")
"""The compilers that ``--for`` names."""


def form_text(result: Result, target: str | None) -> str:
    """Return the text of the module in the form for a compiler, or as propagation leaves it."""
    if target is None:
        return result.text
    if target == "xla":
        return str(result.for_xla())
    warnings: list[Diagnostic] = []
    module = result.for_gspmd(warnings=warnings)
    print_warnings(warnings)
    return str(module)
