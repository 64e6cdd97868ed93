"""xDSL in and out; nothing is imported from xDSL before the first call.

xDSL has no Shardy dialect. Its ops and attributes are therefore unregistered ones (``UnregisteredOp``,
``UnregisteredAttr``), which xDSL parses and prints in Shardy's own notation: what is written here can be read by xDSL,
by MLIR and by Shardy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.walk import entry_block
from shardy_py.ir.interfaces.frontend import Frontend, PrintedName
from shardy_py.values import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xdsl.dialects.builtin import ModuleOp

    from shardy_py.ir.graph.program import Op, Program
    from shardy_py.plugins import Registry

__all__ = [
    "XdslFrontend",
    "extend_registry",
    "import_module",
    "parse_module",
    "print_module",
    "printed_names",
    "to_module",
    "write_back",
]


def _require_xdsl() -> None:
    try:
        import xdsl.ir  # noqa: F401
    except ImportError as error:
        raise UnsupportedError(
            Diagnostic(
                "no-xdsl",
                f"xDSL input needs xDSL, which cannot be imported: {error}",
                hint="pip install 'shardy_py[xdsl]'",
            )
        ) from None


def parse_module(source: str | Path, *, name: str = "-", context: Any = None) -> ModuleOp:
    """Return the module in a text, or in a file, read by xDSL's parser.

    Args:
        source: Text, or the path of a file; ops of unknown dialects in the generic form.
        name: What errors call the source; a path is called by its own name.
        context: The xDSL context with the dialects to know. By default all of xDSL's, and anything unknown is allowed.

    Raises:
        ParseError: the source cannot be read or parsed.
        UnsupportedError: xDSL is missing.
    """
    _require_xdsl()
    from shardy_py.frontends.xdsl.load import parse

    return parse(source, name, context)


def to_module(source: Any) -> ModuleOp:
    """Return the module of a path, or the module itself.

    Raises:
        ParseError: the file cannot be read or parsed.
        VerificationError: the module breaks an invariant.
        UnsupportedError: the source is of another kind, or xDSL is missing.
    """
    _require_xdsl()
    from shardy_py.frontends.xdsl.load import load

    return load(source)


def import_module(module: ModuleOp) -> Program:
    """Return the op graph of a module; `Program.origin` keeps the module, and `write_back` changes it."""
    from shardy_py.frontends.xdsl.importer import import_native

    program = import_native(module)
    program.frontend = XDSL
    return program


def write_back(program: Program) -> ModuleOp:
    """Update the module of a program and return it: attributes, operands, new, moved and erased ops."""
    from shardy_py.frontends.xdsl.writer import write

    return write(program)


def print_module(module: ModuleOp) -> str:
    """Return a module as text.

    It is as xDSL prints it, but for ops whose custom format would lose their sharding: these are in the generic form.
    """
    from shardy_py.frontends.xdsl.printing import print_native

    return print_native(module)


def printed_names(program: Program) -> Mapping[int, PrintedName]:
    """Return the printed name and the native value of all values, by value id."""
    from shardy_py.frontends.xdsl.printing import names_of

    return names_of(program)


def extend_registry(program: Program, registry: Registry) -> Registry:
    """Return a registry extended by the op classes of a program's module."""
    from shardy_py.frontends.xdsl.semantics import extend

    return extend(program, registry)


@frozen
class XdslFrontend(Frontend):
    """xDSL: modules, and files that end in ``.xdsl``."""

    name: str = "xdsl"

    def accepts(self, source: object) -> bool:
        """Return whether this is the path of such a file, or an op of xDSL."""
        if isinstance(source, Path):
            return source.suffix == _SUFFIX
        return any(class_.__module__.startswith("xdsl.") for class_ in type(source).__mro__)

    def import_program(self, source: Any) -> Program:
        """Return the op graph."""
        return import_module(to_module(source))

    def isolate(self, source: Any, *, name: str = "-") -> Any:
        """Return the module of a file that another process has read within its limits; an op stays as it is."""
        if not isinstance(source, Path):
            return super().isolate(source, name=name)
        _require_xdsl()
        from shardy_py.frontends.xdsl.load import parse_isolated

        return parse_isolated(source)

    def write_back(self, program: Program) -> ModuleOp:
        """Update the module and return it."""
        return write_back(program)

    def print_text(self, source: Any) -> str:
        """Return a module as text."""
        return print_module(to_module(source) if isinstance(source, Path) else source)

    def parse_text(self, text: str, *, name: str = "-") -> ModuleOp:
        """Return the module in a text."""
        return parse_module(text, name=name)

    def printed_names(self, program: Program) -> Mapping[int, PrintedName]:
        """Return the names and the native values of all values."""
        return printed_names(program)

    def argument_names(self, program: Program, function: Op) -> Sequence[str]:
        """Return the names of the arguments in the text that a function was read from."""
        block = entry_block(function)
        natives = () if block is None or block.handle is None else block.handle.args
        return [native.name_hint or "" for native in natives]

    def extend_registry(self, program: Program, registry: Registry) -> Registry:
        """Return a registry extended by the op classes."""
        return extend_registry(program, registry)

    def to_bytes(self, source: Any) -> bytes:
        """Return the text of a module, that of a file as it is."""
        if isinstance(source, Path) and source.is_file():
            return source.read_bytes()
        return self.print_text(source).encode()


XDSL = XdslFrontend()
"""The frontend; it holds nothing."""
_SUFFIX = ".xdsl"
