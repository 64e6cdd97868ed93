"""Snapshots: a program as MLIR text in a file, after one pass or after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import ClassVar

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import store_shardings
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.support.files import write_atomically
from shardy_py.values import frozen

AfterPass = Callable[[str, Program], None]
"""Called after each pass with its name and the program as it is then."""


@frozen
class SaveModulePass:
    """Write a snapshot of the program, or nothing where no directory is given.

    Mirrors upstream's `SaveModuleOpPass`.

    Args:
        directory: The directory of the file.
        label: The name of the file, after its number.
        index: The number of the file.
    """

    name: ClassVar[str] = "sdy-save-module"

    directory: str = ""
    label: str = "module"
    index: int = 0

    def run(self, program: Program, context: PassContext) -> None:
        """Write the file; the program stays as it is."""
        if self.directory:
            context.write_snapshot(program, self.directory, self.label, index=self.index)


def snapshot_writer(semantics: OpSemantics) -> Callable[[Program, Path], None]:
    """Return the function with which passes write programs to files, as MLIR text."""

    def write(program: Program, path: Path) -> None:
        store_shardings(program, semantics)
        frontend = frontend_of(program)
        write_atomically(path, frontend.print_text(frontend.write_back(program)))

    return write


def snapshot_after_each(directory: str | Path, semantics: OpSemantics) -> AfterPass:
    """Return a function that writes ``NN.pass-name.mlir`` into a directory after each pass.

    Raises:
        OptionError: the directory cannot be made; the function raises it where a file cannot be written.
    """
    folder = Path(directory)
    with _snapshot_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    write = snapshot_writer(semantics)
    numbers = count()

    def after_pass(name: str, program: Program) -> None:
        path = folder / f"{next(numbers):02}.{name}.mlir"
        with _snapshot_errors(path):
            write(program, path)

    return after_pass


@contextmanager
def _snapshot_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OptionError(
            Diagnostic("snapshot", f"cannot write snapshots: {reason}", str(path), hint="give another directory")
        ) from None
