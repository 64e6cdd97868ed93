"""The native form of a local program: a module of MLIR, or what the frontend of another IR writes."""

from __future__ import annotations

from typing import Any, Protocol

from shardy_py.api.native_file import local_file
from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.ir.graph.printing import print_program
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.program_copy import copy_program
from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.values import frozen


class NativeForm(Protocol):
    """A way to write a local program."""

    def write(self, program: Program) -> Any:
        """Return the native module of an op graph."""
        ...

    def text(self, module: Any) -> str:
        """Return the text of a native module."""
        ...

    def file(self, module: Any, path: str) -> str | bytes:
        """Return the content of a file with a native module; the suffix of its name may decide its format."""
        ...

    def copy(self, program: Program, module: Any) -> Program:
        """Return the op graph of a copy of a native module; `program` is the graph that it was written from."""
        ...


@frozen
class MlirForm(NativeForm):
    """Modules of MLIR."""

    def write(self, program: Program) -> Any:
        """Return the module, which is updated."""
        return write_back(program)

    def text(self, module: Any) -> str:
        """Return the text of a module."""
        return print_module(module)

    def file(self, module: Any, path: str) -> str:
        """Return the text of a module."""
        return print_module(module)

    def copy(self, program: Program, module: Any) -> Program:
        """Return the op graph of a copy; its locations are those of the program that was propagated."""
        return import_module(parse_module(print_module(module, with_locations=True)), name=program.origin.name)


@frozen
class GraphForm(NativeForm):
    """No native program: the op graph is all that is asked for."""

    def write(self, program: Program) -> Any:
        """Return nothing."""
        return None

    def text(self, module: Any) -> str:
        """Return no text."""
        return ""

    def file(self, module: Any, path: str) -> str:
        """Return no text."""
        return ""

    def copy(self, program: Program, module: Any) -> Program:
        """Return a copy of the op graph."""
        return copy_program(program)


@frozen
class FrontendForm(NativeForm):
    """The form of a frontend; MLIR's generic text where it writes no local programs.

    Args:
        frontend: The frontend that the program came through.
    """

    frontend: Frontend

    def write(self, program: Program) -> Any:
        """Return what the frontend writes, or a text."""
        native = self.frontend.write_local(program)
        return print_program(program) if native is None else native

    def text(self, module: Any) -> str:
        """Return the text of a native program."""
        return module if isinstance(module, str) else self.frontend.print_text(module)

    def file(self, module: Any, path: str) -> str | bytes:
        """Return what the frontend writes into a file, or MLIR's generic text."""
        return module if isinstance(module, str) else local_file(self.frontend, module, path)

    def copy(self, program: Program, module: Any) -> Program:
        """Return a copy of the op graph."""
        result = copy_program(program)
        result.origin = program.origin
        return result
