"""Parsing of modules of unknown origin in another process, which they may end.

MLIR's readers, that of bytecode above all, trust what they read: some files make them abort, read what is not theirs or
ask for all memory there is. The process that parses one writes it anew, and reads that again before it answers, so that
what this process reads is what MLIR wrote and has read already.
"""

from __future__ import annotations

from pathlib import Path

from attrs import field

from shardy_py.frontends.sources import source_bytes
from shardy_py.values import frozen

SECONDS = 600.0
WORKER = "shardy_py.frontends.mlir.isolated_parse_worker"


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
    from shardy_py.frontends.isolation import Reader, read_isolated
    from shardy_py.frontends.mlir.portable_artifacts import is_serialized_export

    data, name = source_bytes(source, name)
    reader = Reader(WORKER, "MLIR's parser", "module", SECONDS)
    content = read_isolated(reader, data, name)
    return ParsedModule(content, name, is_serialized_export(data))
