"""Files of propagated programs, as the frontend that read a program reads them again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from shardy_py.api.result import Result
from shardy_py.errors import Diagnostic, ShardyError, UnsupportedError
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.interfaces.frontend import BUNDLED_NAMES, Frontend


def native_file(result: Result, path: str) -> bytes:
    """Return the content of a file with the propagated program.

    Bundled frontends write the text of the program. The frontend of a plugin writes the file by `Frontend.write_file`.
    Where it does not define that and reads files of this name, the first of its text and its bytes for other processes
    is written that it can read.

    Args:
        result: The propagated program.
        path: The file; its suffix may decide its format.

    Raises:
        UnsupportedError: the frontend reads files of this name, but not what it would write there.
        ShardyError: the frontend cannot write the program.
    """
    frontend = frontend_of(result.program)
    if frontend.name in BUNDLED_NAMES and not frontend.writes_files:
        return result.text.encode(errors="surrogateescape")
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        file = Path(folder) / (Path(path).name or "program")
        if frontend.writes_files or not frontend.accepts(file):
            return _written(frontend, result.module, file)
        return _first_readable(frontend, result, file)


def local_file(frontend: Frontend, native: Any, path: str) -> bytes:
    """Return the content of a file with a local program that a frontend wrote.

    Args:
        frontend: The frontend.
        native: What `Frontend.write_local` returned.
        path: The file; its suffix may decide its format.

    Raises:
        ShardyError: the frontend cannot write the program.
    """
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        return _written(frontend, native, Path(folder) / (Path(path).name or "program"))


def _written(frontend: Frontend, native: Any, file: Path) -> bytes:
    frontend.write_file(native, file)
    if not file.is_file():
        message = f"write_file of the frontend {frontend.name!r} wrote no file"
        raise UnsupportedError(Diagnostic("no-output", message, hint="write to the path that it is given"))
    return file.read_bytes()


def _first_readable(frontend: Frontend, result: Result, file: Path) -> bytes:
    """Return the first form of a program that its frontend reads from a file.

    Raises:
        UnsupportedError: it reads none of them.
    """
    forms: tuple[Callable[[], bytes], ...] = (
        lambda: result.text.encode(),
        lambda: frontend.to_bytes(result.module),
    )
    problem = ""
    for form in forms:
        try:
            file.write_bytes(form())
            frontend.import_program(file)
        except ShardyError as error:
            problem = problem or error.diagnostics[0].message
        else:
            return file.read_bytes()
    message = f"the frontend {frontend.name!r} cannot read the file that it would write: {problem}"
    hint = f"write to a file of another suffix for the text; or write Frontend.write_file of {frontend.name!r}"
    raise UnsupportedError(Diagnostic("unreadable-output", message, hint=hint))
