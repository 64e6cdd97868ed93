"""Values of a program and what the native module calls them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from shardy_py.ir.frontend import PrintedName
from shardy_py.ir.graph import Program, Value


def native_values(program: Program) -> Iterator[tuple[Value, Any]]:
    """Iterate over all values with their native ones, in program order."""
    for op in program.walk():
        if op.handle is not None:
            yield from zip(op.results, op.handle.native.results, strict=True)
        for region in op.regions:
            for block in region.blocks:
                if block.handle is not None:
                    yield from zip(block.arguments, block.handle.native.arguments, strict=True)


def names_of(program: Program) -> dict[int, PrintedName]:
    """Return all values' names as `print_module` prints them (``%5``, ``%5#1``, ``%arg0``), and the native values."""
    state = ir.AsmState(program.origin.module.operation)
    return {value.id: PrintedName(native.get_name(state), native) for value, native in native_values(program)}
