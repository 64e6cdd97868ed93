"""Local programs as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic
from shardy_py.extensions import function
from shardy_py.report.data import record_json
from shardy_py.report.terminal import open_console, print_lines, print_table

if TYPE_CHECKING:
    from shardy_py.cost.memory import MemoryReport
    from shardy_py.jax.local import LocalProgram
    from shardy_py.jax.local.port import Port

_HEADINGS = ("tensor", "type", "shard", "sharding")


def print_local(local: LocalProgram, *, file: IO[str] | None = None) -> None:
    """Print what each device has of the arguments and results, and how often devices communicate."""
    console = open_console(file)
    sections = [_rows("arg", local.arguments), _rows("result", local.results)]
    title = f"Local program for {local.device_count} devices"
    print_table(console, title, _HEADINGS, sections, words=_HEADINGS)
    counts = Counter(item.kind for item in local.collectives)
    text = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    print_lines(console, [f"collectives: {text or 'none'}"])


def local_data(local: LocalProgram) -> dict[str, Any]:
    """Return the mesh, the shards, the collectives and the gathered ops of a local program as plain data."""
    return {
        "mesh": str(local.mesh),
        "devices": local.device_count,
        "arguments": [_port_data(port) for port in local.arguments],
        "results": [_port_data(port) for port in local.results],
        "collectives": [
            {"kind": item.kind, "type": str(item.type), "groups": item.groups, "location": item.location}
            for item in local.collectives
        ],
        "gathered": [
            {"op": item.op, "location": item.location, "message": item.message}
            for item in local.warnings
            if item.code == "gathered-op"
        ],
    }


def local_json(
    local: LocalProgram,
    *,
    origin: Mapping[str, Any] | None = None,
    warnings: Iterable[Diagnostic] = (),
    memory: MemoryReport | None = None,
) -> str:
    """Return `local_data` as JSON text, with its origin and warnings, and what shards take where that is given."""
    sizes = {} if memory is None else {"memory": function("memory_data")(memory)}
    return record_json(local_data(local) | sizes, origin, warnings=warnings)


def _rows(word: str, ports: Sequence[Port]) -> list[Sequence[str]]:
    return [
        (f"{word}{number}", str(port.type), _shape_text(port.shard_shape), str(port.sharding or ""))
        for number, port in enumerate(ports)
    ]


def _shape_text(shape: Sequence[int]) -> str:
    return "x".join("?" if size < 0 else str(size) for size in shape) or "scalar"


def _port_data(port: Port) -> dict[str, Any]:
    return {
        "type": str(port.type),
        "shard": list(port.shard_shape),
        "sharding": None if port.sharding is None else str(port.sharding),
    }
