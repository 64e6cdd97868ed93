"""Cost of a program, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from shardy_py.cost.estimates import Cost, LineCost, Quantity, Transfer
from shardy_py.errors import Diagnostic
from shardy_py.report.data import record_json
from shardy_py.report.terminal import NOTE, open_console, print_lines, print_table
from shardy_py.support.texts import format_bytes, format_count, format_seconds
from shardy_py.trace.labels import at_place

if TYPE_CHECKING:
    from shardy_py.cost.expressions import CostExpressions

_WORDS = ("what", "kind", "tensor", "axes", "how", "line")
_LABELS = {
    "seconds": "estimated time",
    "compute_seconds": "  computing",
    "communication_seconds": "  communicating",
    "communication_bytes": "bytes sent",
    "flops": "operations",
    "transcendentals": "  transcendental",
    "total_flops": "  of the whole program",
    "balance": "  balance",
    "memory_traffic_bytes": "bytes read and written",
    "argument_bytes": "argument bytes",
    "result_bytes": "result bytes",
    "peak_bytes": "peak memory",
}


def print_cost(cost: Cost, *, top: int = 10, file: IO[str] | None = None) -> None:
    """Print what one device does, how each number was obtained, and the transfers.

    Args:
        cost: The cost.
        top: How many of the longest transfers to print.
        file: Where to; stdout by default.
    """
    console = open_console(file)
    print_table(console, cost.title, ("what", "value", "how"), [_quantity_rows(cost)], words=_WORDS)
    if cost.transfers:
        headings: tuple[str, ...] = ("kind", "in the program", "runs", "bytes", "time")
        print_table(console, "Transfers by kind", headings, [_kind_rows(cost)], words=_WORDS)
    if cost.transfers and top:
        headings = ("number", "kind", "tensor", "axes", "devices", "runs", "bytes each", "time in all")
        rows = _transfer_rows(cost, top)
        print_table(console, "Transfers that take longest", headings, [rows], words=_WORDS)
        print_lines(console, (f"  {line}" for line in _purposes(cost, top)))
    lines = [line for line in cost.lines if line.location][:top]
    if lines:
        headings = ("line", "ops", "computing", "communicating", "bytes sent")
        rows = [_line_row(line) for line in lines]
        print_table(console, "Lines of the source that take longest", headings, [rows], words=_WORDS)
    for note in cost.notes:
        print_lines(console, [f"note: {note}"], NOTE)


def print_expressions(expressions: CostExpressions, *, file: IO[str] | None = None) -> None:
    """Print what one device does as expressions in unknown sizes.

    Args:
        expressions: The expressions.
        file: Where to; stdout by default.
    """
    console = open_console(file)
    rows = [(_LABELS[name], text) for name, text in expressions.texts.items()]
    print_table(console, expressions.title, ("what", "value"), [rows], words=_WORDS)
    print_lines(console, (f"the same size: {', '.join(names)}" for names in expressions.sizes if len(names) > 1))
    first = expressions.sizes[0][0]
    note = f"for multiples of {expressions.step}, from {expressions.least} on; times need numbers: --size {first}=64"
    print_lines(console, (f"note: {text}" for text in (*expressions.notes, note)), NOTE)


def cost_json(
    cost: Cost,
    *,
    transfers: bool = False,
    ops: bool = False,
    origin: Mapping[str, Any] | None = None,
    warnings: Iterable[Diagnostic] = (),
) -> str:
    """Return a cost as JSON text, with its origin and warnings; see `Cost.to_json`."""
    return record_json(cost.to_json(transfers=transfers, ops=ops), origin, warnings=warnings)


def format_quantity(quantity: Quantity) -> str:
    """Return a number with its unit, short."""
    if quantity.value is None:
        return "unknown"
    if quantity.unit == "s":
        return format_seconds(quantity.value)
    if quantity.unit == "B":
        return format_bytes(round(quantity.value))
    return f"{quantity.value:.1%}" if not quantity.unit else format_count(quantity.value)


def _quantity_rows(cost: Cost) -> Iterable[Sequence[str]]:
    return ((_LABELS[name], format_quantity(item), item.how) for name, item in cost.quantities.items())


def _kind_rows(cost: Cost) -> Iterable[Sequence[str]]:
    for item in cost.kinds:
        yield item.kind, f"{item.count}", f"{item.runs:g}", format_bytes(round(item.bytes)), _seconds(item.seconds)


def _transfer_rows(cost: Cost, top: int) -> Iterable[Sequence[str]]:
    for item in _longest(cost, top):
        total = None if item.seconds is None else item.seconds * item.runs
        sent = format_bytes(item.bytes)
        number = str(item.number) if item.number >= 0 else ""
        yield number, item.kind, item.tensor, item.axes, f"{item.devices}", f"{item.runs:g}", sent, _seconds(total)


def _line_row(line: LineCost) -> Sequence[str]:
    sent = format_bytes(round(line.sent))
    times = _seconds(line.compute_seconds), _seconds(line.communication_seconds)
    return line.location, f"{line.ops}", *times, sent


def _longest(cost: Cost, top: int) -> list[Transfer]:
    return sorted(cost.transfers, key=lambda item: (-item.runs * (item.seconds or 0), -item.runs * item.bytes))[:top]


def _purposes(cost: Cost, top: int) -> Iterable[str]:
    """Yield a line per communication behind the longest transfers: its number, tensor, op and place."""
    lines = {
        item.number: f"{item.number}: {item.value}, {item.where}{at_place(item.location)}"
        for item in _longest(cost, top)
        if item.number >= 0
    }
    yield from lines.values()


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds)
