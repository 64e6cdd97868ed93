"""The frontend of op graphs: programs built in Python, or read by another frontend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardy_py.ir.graph.printing import print_program, value_names
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.graph.verify import verify_given
from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
from shardy_py.values import frozen

__all__ = ["PROGRAM", "ProgramFrontend"]


@frozen
class ProgramFrontend(Frontend):
    """Op graphs.

    One that was built is copied, with the same ids, so that it stays as it was; its values stand for those of the copy.
    One that another frontend read is taken as it is, and goes back through that frontend.
    """

    name: str = "program"

    def accepts(self, source: object) -> bool:
        """Return whether this is an op graph."""
        return isinstance(source, Program)

    def import_program(self, source: Program) -> Program:
        """Return a copy of an op graph.

        Raises:
            VerificationError: it is not well formed.
        """
        if source.frontend not in (None, self):
            # Whoever gives it may have changed it since it was read.
            source.attribute_names = None
            source.kinds_hold = False
            return source
        verify_given(source)
        result = copy_program(source)
        result.origin = source
        result.frontend = self
        return result

    def write_back(self, program: Program) -> Program:
        """Return the op graph itself."""
        return program

    def print_text(self, source: Program) -> str:
        """Return an op graph in MLIR's generic form, or as its own frontend prints it."""
        other = source.frontend
        return print_program(source) if other in (None, self) else other.print_text(other.write_back(source))

    def parse_text(self, text: str, *, name: str = "-") -> Any:
        """Return the text, which the MLIR frontend accepts."""
        return text

    def printed_names(self, program: Program) -> Mapping[int, PrintedName]:
        """Return the names of all values, with those of the program that was copied."""
        values = {value.id: value for value in value_names(program.origin)} if program.origin is not None else {}
        names = value_names(program)
        return {value.id: PrintedName(name, values.get(value.id)) for value, name in names.items()}


PROGRAM = ProgramFrontend()
"""The frontend; it holds nothing."""
