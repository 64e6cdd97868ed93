"""Modules as text, and what xDSL's printer calls the values."""

from __future__ import annotations

from io import StringIO
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.printer import Printer

from shardy_py.ir.graph import Program


def print_native(module: ModuleOp) -> str:
    """Return a module as text; see `print_module`."""
    stream = StringIO()
    Printer(stream).print_op(module)
    return f"{stream.getvalue()}\n"


class _Names(Printer):
    """A printer that remembers the names it gives."""

    def __init__(self) -> None:
        super().__init__(StringIO())
        self.names: dict[SSAValue, str] = {}

    def print_ssa_value(self, value: SSAValue) -> str:
        name = super().print_ssa_value(value)
        self.names[value] = f"%{name}"
        return name


def names_of(program: Program) -> dict[int, tuple[str, Any]]:
    """Return the printed name and the native value of all values, by value id; see `printed_names`."""
    printer = _Names()
    printer.print_op(program.origin.module)
    found: dict[int, tuple[str, Any]] = {}
    for op in program.walk():
        pairs = list(zip(op.results, op.handle.results, strict=True)) if op.handle is not None else []
        for region in op.regions:
            for block in region.blocks:
                if block.handle is not None:
                    pairs += zip(block.arguments, block.handle.args, strict=True)
        found.update({value.id: (printer.names.get(native, ""), native) for value, native in pairs})
    return found
