"""Values of a program with their names and native values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from jaxlib.mlir import ir

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import entry_arguments
from shardy_py.ir.interfaces.frontend import PrintedName
from shardy_py.sharding.lexer import unescape

_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"(?:\(.*\))?\)', re.DOTALL)


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
    """Return the printed names of all values (``%5``, ``%5#1``, ``%arg0``), and the native values."""
    state = ir.AsmState(program.origin.module.operation)
    return {value.id: PrintedName(native.get_name(state), native) for value, native in native_values(program)}


def argument_names(function: Op) -> Sequence[str]:
    """Return the names in the locations of a function's arguments, "" where there is none."""
    arguments = entry_arguments(function)
    if not arguments or function.handle is None:
        return ()
    return [location_name(native.location) for native in function.handle.native.regions[0].blocks[0].arguments]


def location_name(location: ir.Location) -> str:
    """Return the name of a location that has one and is no place in a file, else ""."""
    found = _NAME.fullmatch(str(location))
    return (unescape(found[1]) or "") if found else ""
