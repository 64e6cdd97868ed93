"""MLIR in and out, through jaxlib's bindings; nothing is imported from jaxlib before the first call.

The bindings belong to a program's *native* side: the module, its ops and attributes as MLIR holds them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir.bindings import import_bindings
from shardy_py.frontends.mlir.isolated_parse import ParsedModule
from shardy_py.frontends.mlir.newer_text import to_newer
from shardy_py.frontends.sources import is_native_module
from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
from shardy_py.sharding.jax_text import jax_constraint
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxlib.mlir import ir

    from shardy_py.ir.graph.program import Op, Program

__all__ = [
    "MlirFrontend",
    "import_module",
    "parse_module",
    "print_module",
    "printed_names",
    "run_native_pass",
    "to_module",
    "verify_module",
    "write_back",
]


def _require_jaxlib() -> None:
    try:
        import_bindings()
    except ImportError as error:
        raise UnsupportedError(
            Diagnostic(
                "no-jaxlib",
                f"MLIR input needs jaxlib, which cannot be imported: {error}",
                hint="pip install 'shardy_py[stablehlo]'",
            )
        ) from None


def parse_module(source: str | bytes | Path, *, name: str = "-") -> ir.Module:
    """Return the module in a text, in bytecode, or in a file with either.

    Args:
        source: Text, bytes (text or bytecode), or the path of a file.
        name: What locations call the source; a path is called by its own name.

    Raises:
        ParseError: the source cannot be read, parsed or verified; all messages of MLIR with their locations.
        UnsupportedError: jaxlib is missing.
    """
    _require_jaxlib()
    from shardy_py.frontends.mlir.load import parse

    return parse(source, name)


def to_module(source: Any) -> ir.Module:
    """Return the module of anything that has one.

    Args:
        source: Text, bytecode, a path, an ``ir.Module`` (returned as it is), or what JAX's ``lower`` or ``trace``
            returns (copied, so that JAX's own module stays as it was).

    Raises:
        ParseError: the source cannot be read, parsed or verified.
        UnsupportedError: the source is of another kind, or jaxlib is missing.
    """
    _require_jaxlib()
    from shardy_py.frontends.mlir.load import load

    return load(source)


def import_module(
    module: ir.Module, *, name: str = "-", native_use_order: bool = False, into: Program | None = None
) -> Program:
    """Return the op graph of a module.

    Args:
        module: The module; `Program.origin` keeps it, and `write_back` changes it.
        name: What locations call the source of a module parsed from text; see `parse_module`.
        native_use_order: Take the order of uses from MLIR's use lists. By default it is the order in which MLIR's
            parser would create them, so that a module built in memory gives the same result as its text.
        into: A program whose contents are replaced, instead of a new one.

    Raises:
        UnsupportedError: the ops are nested too deeply.
    """
    from shardy_py.frontends.mlir.importer import import_native

    program = import_native(module, name=name, native_use_order=native_use_order, into=into)
    program.frontend = MLIR
    return program


def write_back(program: Program) -> ir.Module:
    """Update the module of a program and return it: attributes, operands, new, moved and erased ops."""
    from shardy_py.frontends.mlir.writer import write

    return write(program)


def write_types(program: Program) -> ir.Module:
    """Update the module of a program whose values have other types, too, and return it."""
    from shardy_py.frontends.mlir.writer import write_with_types

    return write_with_types(program)


def print_module(module: ir.Module, *, generic: bool = False, with_locations: bool = False) -> str:
    """Return a module as text, as MLIR's tools print it.

    Args:
        module: The module.
        generic: Whether to print every op in MLIR's generic form.
        with_locations: Whether to print the location of every op, so that a module that is parsed from it has them.
    """
    if not generic and not with_locations:
        return to_newer(str(module))
    return to_newer(str(module.operation.get_asm(print_generic_op_form=generic, enable_debug_info=with_locations)))


def printed_names(program: Program) -> Mapping[int, PrintedName]:
    """Return the printed name and the native value of all values, by value id."""
    from shardy_py.frontends.mlir.native_reader import names_of

    return names_of(program)


def verify_module(module: ir.Module, *, name: str = "-") -> None:
    """Run MLIR's verifiers over a module.

    Args:
        module: The module.
        name: What locations call the source of a module parsed from text.

    Raises:
        VerificationError: the module breaks an invariant of one of its ops.
    """
    from shardy_py.frontends.mlir.load import verify

    verify(module, name)


def run_native_pass(program: Program, name: str) -> None:
    """Run one of MLIR's own generic passes over a program: written back, rewritten, imported again.

    Args:
        program: The program; its contents are replaced. Its table of shardings is left alone, it refers to values
            that are gone.
        name: ``canonicalize``, ``cse`` or ``symbol-dce``.

    Raises:
        VerificationError: the pass fails.
    """
    from shardy_py.frontends.mlir.native_passes import run

    run(program, name)


@frozen
class MlirFrontend(Frontend):
    """MLIR: text, bytecode, files, and modules of jaxlib; it is asked last, so that all other text is MLIR's."""

    name: str = "mlir"

    def accepts(self, source: object) -> bool:
        """Return whether this is text, bytes, a path, a module of jaxlib, or what `parse_isolated` returns."""
        return isinstance(source, (str, bytes, bytearray, Path, ParsedModule)) or is_native_module(source)

    def import_program(self, source: Any) -> Program:
        """Return the op graph; locations name the file it was read from."""
        program = import_module(to_module(source), name=self.source_name(source) or "-")
        program.kinds_hold = True
        return program

    def import_verified(self, source: Any) -> Program:
        """Return the op graph of a module of jaxlib as it is; everything else is verified where it is parsed."""
        if not is_native_module(source):
            return self.import_program(source)
        program = import_module(source)
        program.kinds_hold = True
        return program

    def source_name(self, source: Any) -> str:
        """Return the path, or the name that another process has parsed the source under."""
        if isinstance(source, ParsedModule):
            return "" if source.name == "-" else source.name
        return super().source_name(source)

    def isolate(self, source: Any, *, name: str = "-") -> Any:
        """Return text and bytecode as another process has parsed them; modules have been made in this one."""
        if isinstance(source, bytearray):
            source = bytes(source)
        if not isinstance(source, (str, bytes, Path)):
            return source
        from shardy_py.frontends.mlir.isolated_parse import parse_isolated

        return parse_isolated(source, name=name)

    def constraint_code(self, sharding: TensorSharding, mesh: Mesh) -> str:
        """Return the line of JAX, which most programs that come as MLIR were written in."""
        return jax_constraint(sharding)

    def write_back(self, program: Program) -> ir.Module:
        """Update the module and return it."""
        return write_back(program)

    def print_text(self, source: Any) -> str:
        """Return a module as text."""
        return print_module(source if is_native_module(source) else to_module(source))

    def parse_text(self, text: str, *, name: str = "-") -> ir.Module:
        """Return the module in a text."""
        return parse_module(text, name=name)

    def printed_names(self, program: Program) -> Mapping[int, PrintedName]:
        """Return the names and the native values of all values."""
        return printed_names(program)

    def argument_names(self, program: Program, function: Op) -> Sequence[str]:
        """Return the names in the locations of the arguments, which is where JAX puts them."""
        from shardy_py.frontends.mlir.native_reader import argument_names

        return argument_names(function)

    def to_bytes(self, source: Any) -> bytes:
        """Return text or bytecode as it is, a module as text."""
        if isinstance(source, Path) and source.is_file():
            # Bytes that are no module are refused where they are read, with a better message.
            return source.read_bytes()
        if isinstance(source, (str, bytes, bytearray)):
            return source.encode() if isinstance(source, str) else bytes(source)
        if isinstance(source, ParsedModule):
            return source.content
        return self.print_text(source).encode()

    def from_bytes(self, data: bytes, *, name: str = "-") -> bytes:
        """Return the bytes."""
        return data

    def to_mlir(self, native: Any) -> Any:
        """Return the module itself."""
        return native

    def verify_native(self, native: Any, *, name: str = "-") -> None:
        """Run MLIR's verifiers."""
        verify_module(native, name=name)

    def run_native_pass(self, program: Program, name: str) -> None:
        """Run one of MLIR's own generic passes."""
        run_native_pass(program, name)


MLIR = MlirFrontend()
"""The frontend; it holds nothing."""
