"""Printing of xDSL modules, and the printed names of values."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.printer import Printer

from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.frontend import PrintedName

_SHARDY = "sdy."


class ModulePrinter(Printer):
    """A printer that keeps all shardings and records the names of values.

    The custom formats of some of xDSL's ops leave out attributes that they do not know; such ops are printed in the
    generic form where they have attributes of Shardy.
    """

    def __init__(self) -> None:
        self.text = StringIO()
        super().__init__(self.text)
        self.names: dict[SSAValue, str] = {}
        self._forgetful: dict[type[Operation], bool] = {}

    def print_op(self, op: Operation) -> None:
        """Print an op."""
        if self.print_generic_format or not self._is_forgetful(op):
            super().print_op(op)
            return
        self.print_generic_format = True
        super().print_op(op)
        self.print_generic_format = False

    def print_ssa_value(self, value: SSAValue) -> str:
        """Print a value, giving it a name if it has none."""
        name = super().print_ssa_value(value)
        self.names[value] = f"%{name}"
        return name

    def _is_forgetful(self, op: Operation) -> bool:
        if not any(name.startswith(_SHARDY) for name in op.attributes):
            return False
        class_ = type(op)
        if class_ not in self._forgetful:
            stream = StringIO()
            Printer(stream).print_op(op)
            self._forgetful[class_] = _SHARDY not in stream.getvalue().partition("\n")[0]
        return self._forgetful[class_]


def print_native(module: ModuleOp) -> str:
    """Return a module as text; see `print_module`."""
    printer = ModulePrinter()
    printer.print_op(module)
    return f"{printer.text.getvalue()}\n"


def names_of(program: Program) -> dict[int, PrintedName]:
    """Return the printed name and the native value of all values, by value id; see `printed_names`."""
    printer = ModulePrinter()
    printer.print_op(program.origin.module)
    names: dict[int, PrintedName] = {}
    for op in program.walk():
        pairs = list(zip(op.results, op.handle.results, strict=True)) if op.handle is not None else []
        for region in op.regions:
            for block in region.blocks:
                if block.handle is not None:
                    pairs += zip(block.arguments, block.handle.args, strict=True)
        names.update({value.id: PrintedName(printer.names.get(native, ""), native) for value, native in pairs})
    return names
