"""The protocol of frontends: import into the op graph and export from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

BUNDLED_NAMES = ("program", "xdsl", "jit", "hlo", "jax", "onnx", "torch", "mlir")
"""The names of the frontends of this package, in the order in which they are asked; those of plugins have others."""


class PrintedName(NamedTuple):
    """The name and the native form of a value.

    Args:
        name: The name in the text of the program, such as ``%5``, or "".
        native: The value as the program's own library holds it, or None.
    """

    name: str
    native: Any


@runtime_checkable
class Frontend(Protocol):
    """A kind of programs: their import as op graphs, and the export of shardings to them.

    Subclasses write `name`, `accepts`, `import_program`, `write_back` and `print_text`; the rest has defaults. They
    import the library of their programs when a program comes, not before.

    Attributes:
        name: The name of the frontend, for messages.
    """

    name: str

    def accepts(self, source: object) -> bool:
        """Return whether a source is a program of this kind; it must not raise for any source."""
        ...

    def import_program(self, source: Any) -> Program:
        """Return the op graph of a program.

        `Program.origin` keeps whatever `write_back` needs. `Program.frontend` may be another frontend that goes on.

        Raises:
            ShardyError: the source is not valid.
        """
        ...

    def import_verified(self, source: Any) -> Program:
        """Return the op graph of a program that is known to be valid. Default: as `import_program`.

        Raises:
            ShardyError: the source cannot be read.
        """
        return self.import_program(source)

    def source_name(self, source: Any) -> str:
        """Return the name of the file that a source was read from, or "". Default: a path's own name."""
        return str(source) if isinstance(source, Path) else ""

    def isolate(self, source: Any, *, name: str = "-") -> Any:
        """Return a source of unknown origin in a form that is safe to read in this process.

        By default a text, bytes or the path of a file are refused, as whatever reads them trusts them. An object has
        been made in this process already, and stays as it is.

        Args:
            source: The source.
            name: The name of the source in locations; a path is called by its own name.

        Raises:
            UnsupportedError: the frontend has no reader that runs in a process of its own.
            ShardyError: the source is not valid.
        """
        if not isinstance(source, (str, bytes, bytearray, Path)):
            return source
        message = f"the frontend {self.name!r} has no reader for files of unknown origin"
        hint = "read the file as a trusted one, in a container; or write Frontend.isolate"
        location = str(source) if isinstance(source, Path) else name
        raise UnsupportedError(Diagnostic("no-isolated-reader", message, location, hint=hint))

    def constraint_code(self, sharding: TensorSharding, mesh: Mesh) -> str:
        """Return the line that a user writes to constrain a tensor ``x`` in a program of this kind. Default: "".

        Advice shows it above the ops of Shardy that do the same.
        """
        return ""

    def with_sizes(self, source: Any, sizes: Mapping[str, int]) -> Any:
        """Return a source in which dynamic dimensions have sizes. Default: None, to give them in the op graph.

        Args:
            source: A source that the frontend accepts.
            sizes: The sizes, by names that the frontend knows, or ``?`` for all others.

        Raises:
            ShardyError: a name is not known, or a size does not fit.
        """
        return None

    def write_back(self, program: Program) -> Any:
        """Update the native form of a program and return it; shardings are in the attributes of the ops."""
        ...

    def print_text(self, source: Any) -> str:
        """Return the text of a native program: a result of `write_back`, or an accepted source other than a path."""
        ...

    def parse_text(self, text: str, *, name: str = "-") -> Any:
        """Return a source from the text of one, as `print_text` writes it.

        Args:
            text: The text.
            name: What errors call the text.

        Raises:
            UnsupportedError: programs of this kind cannot be read from text, which is the default.
        """
        hint = "write Frontend.parse_text, or to_bytes and from_bytes"
        raise UnsupportedError(
            Diagnostic("no-text-form", f"the frontend {self.name!r} cannot read the text of a program", name, hint=hint)
        )

    def printed_names(self, program: Program) -> Mapping[int, PrintedName]:
        """Return the names of values in the text of a program, by value id. Default: MLIR's numbering."""
        from shardy_py.ir.graph.printing import value_names

        return {value.id: PrintedName(name, value) for value, name in value_names(program).items()}

    def argument_names(self, program: Program, function: Op) -> Sequence[str]:
        """Return the names of a function's arguments in the native program, "" for none. Default: no names."""
        return ()

    def argument_aliases(self, program: Program, function: Op) -> Mapping[str, int]:
        """Return the further names of a function's arguments, to their numbers. Default: none."""
        return {}

    def op_scope(self, program: Program, op: Op) -> str:
        """Return the path of names that an op is in: its name stack, module or node. Default: scope or location."""
        return op.scope or op.location

    def extend_registry(self, program: Program, registry: Any) -> Any:
        """Return a `Registry` extended by the semantics that a program itself gives its ops. Default: the same one."""
        return registry

    def to_bytes(self, source: Any) -> bytes:
        """Return a source in a form for other processes. Default: what is in its file, or its text."""
        return source.read_bytes() if isinstance(source, Path) else self.print_text(source).encode()

    def from_bytes(self, data: bytes, *, name: str = "-") -> Any:
        """Return a source from the form for other processes. Default: from its text."""
        return self.parse_text(data.decode(), name=name)

    def write_file(self, native: Any, path: Path) -> None:
        """Write a result of `write_back` to a new file that `import_program` can read. Default: its text.

        Args:
            native: What `write_back` returned.
            path: The file; it has the suffix that a user asks for.
        """
        path.write_text(self.print_text(native), encoding="utf-8")

    @property
    def writes_files(self) -> bool:
        """True if the frontend has a form of files. Default: if the class defines `write_file`."""
        return type(self).write_file is not Frontend.write_file

    @property
    def writes_local(self) -> bool:
        """True if the frontend has a form of local programs. Default: if the class defines `write_local`."""
        return type(self).write_local is not Frontend.write_local

    def write_local(self, program: Program) -> Any:
        """Return the native form of a local program: the program of one device, whose types are those of shards.

        `print_text` prints it; a text is printed as it is. Communication is by the ops that the dialect has for it
        (`Dialect(name, local_ops=...)`). `Program.origin` is that of the global program. Default: None, for MLIR's
        generic text.
        """
        return None

    def argument_arrays(self, program: Program) -> Mapping[int, Any]:
        """Return the arrays of arguments that a program brings itself, such as weights, by number. Default: none."""
        return {}

    def run_local(self, native: Any, device_count: int, shards: Sequence[Any]) -> Sequence[Any]:
        """Run a local program on all devices and return the shards of its results.

        Args:
            native: What `write_local` returned.
            device_count: The number of devices.
            shards: The shards of each argument, stacked by device: arrays of numpy.

        Returns:
            The shards of each result, stacked in the same way.

        Raises:
            UnsupportedError: nothing runs the programs of this kind, which is the default.
        """
        message = f"the frontend {self.name!r} does not run local programs"
        hint = "give the plugin of its ops FUNCTIONS, one of numpy for each op: then 'shardy run' runs it on virtual "
        hint += "devices, as shardy_py.testing.run_sharded does; or write Frontend.run_local"
        raise UnsupportedError(Diagnostic("cannot-run", message, hint=hint))

    def to_mlir(self, native: Any) -> Any:
        """Return a result of `write_back` in a form that the MLIR frontend accepts. Default: its text."""
        return self.print_text(native)

    def verify_native(self, native: Any, *, name: str = "-") -> None:
        """Verify a result of `write_back`, where the native library can do so fast. Default: nothing.

        Args:
            native: What `write_back` returned.
            name: What locations call the source.

        Raises:
            VerificationError: the program is not valid.
        """
        return None

    def run_native_pass(self, program: Program, name: str) -> None:
        """Run a pass of the native library over a program.

        Raises:
            UnsupportedError: the library has no such pass, which is the default.
        """
        hint = "write the program as MLIR"
        message = f"programs of the frontend {self.name!r} have no pass {name!r} of their own"
        raise UnsupportedError(Diagnostic("no-native-pass", message, hint=hint))
