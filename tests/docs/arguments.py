"""Writes the table of arguments in docs/reference/api.md from the options: ``python -m tests.docs``."""

from __future__ import annotations

import inspect
from pathlib import Path

from shardy_py.api.keywords import help_of
from shardy_py.api.options import PropagateArguments

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md"
BEGIN, END = "<!-- arguments: python -m tests.docs -->\n", "<!-- end -->"
LINKS = {
    "in_shardings": "see [give shardings](../how-to/give-shardings.md)",
    "module": "see also [programs from JAX](../how-to/programs-from-jax.md) and [frontends](plugins.md#frontends)",
    "op_priorities": "see [set priorities](../how-to/priorities.md)",
    "inline_calls": "see [inline calls](../how-to/inline-calls.md)",
    "keep_uneven_shardings": "see [give shardings](../how-to/give-shardings.md#a-sharding-that-does-not-divide)",
    "dump_directory": "see [look at every pass](../how-to/look-at-every-pass.md)",
}
"""The guides about arguments."""


def page() -> str:
    """Return the text of the page with the table as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{_table()}\n{END}{rest.partition(END)[2]}"


def _table() -> str:
    lines = ["| argument | default | meaning |", "|---|---|---|"]
    for name, parameter in inspect.signature(PropagateArguments).parameters.items():
        default = "" if parameter.default is parameter.empty else f"`{parameter.default!r}`"
        text = help_of(PropagateArguments)[name].replace("``", "`")
        link = f" {LINKS[name].capitalize()}." if name in LINKS else ""
        lines.append(f"| `{name}` | {default} | {text}{link} |")
    return "\n".join(lines) + "\n"
