"""Memory of tensors on a device, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any

from shardy_py.cost.memory import MemoryReport, TensorMemory
from shardy_py.report.terminal import open_console, print_lines, print_table
from shardy_py.support.texts import format_bytes

_SHOWN = 10
_HEADINGS = ("tensor", "shard", "logical", "shard bytes", "padded bytes", "waste", "memory")
_WORDS = ("tensor", "shard", "memory")


def print_memory(report: MemoryReport, *, file: IO[str] | None = None) -> None:
    """Print the largest inputs and outputs with their bytes on one device, and what all of them take."""
    tensors = sorted((*report.arguments, *report.results), key=lambda item: -item.padded_bytes)
    rows = [(*_cells(item.name, str(item.shape), [item]), item.memory_space) for item in tensors[:_SHOWN]]
    if len(tensors) > _SHOWN:
        rest = tensors[_SHOWN:]
        rows.append((*_cells(f"{len(rest)} others", "", rest), ""))
    sums = [(*_cells("arguments", "", report.arguments), ""), (*_cells("results", "", report.results), "")]
    console = open_console(file)
    title = f"Memory on one device, layout {report.policy}"
    print_table(console, title, _HEADINGS, [rows, sums], words=_WORDS)
    arguments, results = (sum(item.padded_bytes for item in group) for group in (report.arguments, report.results))
    print_lines(console, [f"padded bytes per device: arguments {arguments}, results {results}"])
    if report.unknown:
        print_lines(console, [f"of unknown size: {', '.join(report.unknown)}"])


def memory_data(report: MemoryReport) -> dict[str, Any]:
    """Return a report as plain data with stable keys."""
    return {
        "policy": report.policy,
        "arguments": [_tensor_data(item) for item in report.arguments],
        "results": [_tensor_data(item) for item in report.results],
        "arguments_padded_bytes": sum(item.padded_bytes for item in report.arguments),
        "results_padded_bytes": sum(item.padded_bytes for item in report.results),
        "unknown": list(report.unknown),
    }


def _tensor_data(item: TensorMemory) -> dict[str, Any]:
    return {
        "name": item.name,
        "shard": str(item.shape),
        "logical_bytes": item.logical_bytes,
        "shard_bytes": item.shard_bytes,
        "padded_bytes": item.padded_bytes,
        "waste": round(item.waste, 6),
        "memory_space": item.memory_space,
    }


def _cells(name: str, shape: str, items: Sequence[TensorMemory]) -> tuple[str, ...]:
    logical, shard, padded = (
        sum(item.logical_bytes for item in items),
        sum(item.shard_bytes for item in items),
        sum(item.padded_bytes for item in items),
    )
    waste = f"{(padded - shard) / padded:.1%}" if padded else "0.0%"
    return name, shape, *map(format_bytes, (logical, shard, padded)), waste
