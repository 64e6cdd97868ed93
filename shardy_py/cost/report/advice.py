"""Advice, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from shardy_py.cost.advice.constraints import Advice, AdvisedConstraint
from shardy_py.cost.advice.layouts import InputAdvice
from shardy_py.cost.advice.pricing import Figures
from shardy_py.report.data import record_json
from shardy_py.report.terminal import HEADING, open_console, print_lines, print_table
from shardy_py.support.texts import format_bytes, format_seconds

_HEADINGS = ("program", "bytes sent", "time", "peak memory")
_WORDS = ("program",)
_MLIR = 4


def print_advice(advice: Advice, *, file: IO[str] | None = None) -> None:
    """Print what the constraints save, then each as a user writes it and as MLIR.

    Args:
        advice: The advice.
        file: Where to; stdout by default.
    """
    console = open_console(file)
    rows = [("as it is", *_figures(advice.before))]
    for number, advised in enumerate(advice.constraints, start=1):
        rows.append((f"with {number}" if number == 1 else f"with 1 to {number}", *_figures(advised.together)))
    if advice.inputs is not None:
        rows.append(("with inputs", *_figures(advice.inputs.figures)))
    print_lines(console, [advice.title], HEADING)
    print_table(console, "", _HEADINGS, [rows], words=_WORDS)
    for number, advised in enumerate(advice.constraints, start=1):
        _print(console, f"{number}. {_place(advised)}", _code(advised), f"alone: {advised.alone}")
    if not advice.constraints:
        print_lines(console, [advice.nothing_saved])
    if advice.inputs is not None:
        _print(console, advice.inputs_title, advice.inputs.lines)
    if advice.others:
        print_lines(console, ["", "Alone these would help, too:"])
    for advised in advice.others:
        _print(console, f"- {_place(advised)}", advised.constraint.lines[:_MLIR], str(advised.alone))


def print_layouts(advice: InputAdvice, *, file: IO[str] | None = None) -> None:
    """Print what each layout costs, then the shardings of each as users of the frontend write them.

    Args:
        advice: The advice for inputs.
        file: Where to; stdout by default.
    """
    console = open_console(file)
    print_lines(console, [advice.title], HEADING)
    rows = [
        (f"{number}. {layout.name}", *_figures(layout.figures)) for number, layout in enumerate(advice.layouts, start=1)
    ]
    print_table(console, "", ("layout", *_HEADINGS[1:]), [rows], words=("layout",))
    for number, layout in enumerate(advice.layouts, start=1):
        note = "" if not advice.goal.excess(layout.figures) else ", which does not fit"
        specs = layout.lines
        if layout.constraint_count:
            constraints = "1 constraint" if layout.constraint_count == 1 else f"{layout.constraint_count} constraints"
            specs.append(f"and {constraints} inside")
        _print(console, f"{number}. {layout.name}{note}", specs)


def advice_json(advice: Advice | InputAdvice, *, origin: Mapping[str, Any] | None = None) -> str:
    """Return advice as JSON text, with its origin and warnings; see `Advice.to_json`."""
    return record_json(advice.to_json(), origin, warnings=advice.warnings)


def _place(advised: AdvisedConstraint) -> str:
    return str(advised.constraint.place)


def _code(advised: AdvisedConstraint) -> Iterator[str]:
    if diff := advised.constraint.diff:
        yield from diff
    elif code := advised.constraint.code:
        yield f"{code}   # behind {advised.constraint.line}" if advised.constraint.line else code
    ops = advised.constraint.mlir
    yield from ops[:_MLIR]
    if len(ops) > _MLIR:
        yield f"... and {len(ops) - _MLIR} more"


def _figures(figures: Figures) -> Sequence[str]:
    seconds = "-" if figures.seconds is None else format_seconds(figures.seconds)
    return format_bytes(round(figures.bytes)), seconds, format_bytes(round(figures.peak_bytes))


def _print(console: Console, title: str, code: Iterable[str] = (), note: str = "") -> None:
    """Print an item: lines of code stay whole, so that they can be copied."""
    print_lines(console, [title], "bold")
    for line in code:
        console.print(Text(f"    {line}"), soft_wrap=True)
    if note:
        print_lines(console, [f"    {note}"])
