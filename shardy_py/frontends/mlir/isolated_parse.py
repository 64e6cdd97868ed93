"""Parsing of modules of unknown origin in another process, which they may end.

MLIR's readers, that of bytecode above all, trust what they read: some files make them abort, read what is not theirs or
ask for all memory there is. The process that parses one writes it anew, and reads that again before it answers, so that
what this process reads is what MLIR wrote and has read already.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import field

from shardy_py.errors import Diagnostic, ParseError, ShardyError, UnsupportedError, VerificationError
from shardy_py.frontends.sources import source_bytes
from shardy_py.values import frozen

if TYPE_CHECKING:
    import subprocess

SECONDS = 600
_ERRORS: dict[str, type[ShardyError]] = {
    item.__name__: item for item in (ParseError, UnsupportedError, VerificationError)
}
_START = "import sys; sys.path[:] = {path!r}; from shardy_py.frontends.mlir.isolated_parse_worker import main; main()"


@frozen
class ParsedModule:
    """A module that another process has parsed and verified; `shardy_py.propagate` takes it.

    Args:
        content: The module, as MLIR wrote it: bytecode, or text where it has strings that are no UTF-8.
        name: What locations call its source.
        is_export: Whether it was a serialized ``Exported`` of JAX.
    """

    content: bytes = field(repr=False)
    name: str = "-"
    is_export: bool = False


def parse_isolated(source: str | bytes | Path, *, name: str = "-") -> ParsedModule:
    """Return a module, parsed and verified in another process.

    Args:
        source: Text, bytes (text or bytecode), or the path of a file.
        name: What locations call the source; a path is called by its own name.

    Raises:
        ParseError: the source cannot be read, parsed or verified, or it ends the process or uses up its time.
        UnsupportedError: jaxlib is missing.
    """
    # Not at the top: few programs are parsed in another process.
    import json
    import subprocess

    data, name = source_bytes(source, name)
    path = [str(item) for item in sys.path]
    command = [sys.executable, "-c", _START.format(path=path), name]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        message = f"MLIR's parser did not end within {SECONDS} seconds"
        raise ParseError(Diagnostic("parser-timeout", message, name)) from None
    except OSError as error:
        message = f"the process that parses cannot be started: {error.strerror or error}"
        raise UnsupportedError(Diagnostic("no-process", message, name)) from None
    head, line_end, code = done.stdout.partition(b"\n")
    if done.returncode or not line_end:
        raise ParseError(Diagnostic("parser-aborted", f"MLIR's parser aborts on this module{_reason(done)}", name))
    problems = json.loads(head)
    if problems:
        class_ = _ERRORS.get(problems["class"], ParseError)
        raise class_(*(Diagnostic(**item) for item in problems["diagnostics"]))
    # Not at the top, as JAX's modules need the bindings.
    from shardy_py.frontends.jax_modules import is_serialized_export

    return ParsedModule(code, name, is_serialized_export(data))


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return the reason why the process ended, with the last line that it wrote."""
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    ended = f"exit code {done.returncode}"
    if done.returncode < 0:
        import signal

        try:
            ended = signal.Signals(-done.returncode).name
        except ValueError:
            ended = f"signal {-done.returncode}"
    said = next((line.strip() for line in lines if "Assertion" in line or "LLVM ERROR" in line or "Error" in line), "")
    return f" ({ended}{f': {said[:200]}' if said else ''})"
