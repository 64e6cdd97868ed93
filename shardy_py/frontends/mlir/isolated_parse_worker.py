"""The process that parses modules of unknown origin for `shardy_py.frontends.mlir.isolated_parse`.

It reads a module from stdin, writes one line of JSON to stdout, which is null or what is wrong, and then the
module as bytecode.
"""

from __future__ import annotations

import io
import json
import os
import sys

from attrs import asdict

from shardy_py.errors import ShardyError

_LEAST_MEMORY = 16 * 1024**3
_MEMORY_PER_BYTE = 64


def main() -> None:
    """Parse the module on stdin; its name is the argument."""
    answer = os.dup(1)
    # What libraries print must not stand in the answer.
    os.dup2(2, 1)
    data = sys.stdin.buffer.read()
    _limit(len(data))
    try:
        problems, code = None, _parse(data, sys.argv[1])
    except ShardyError as error:
        problems = {"class": type(error).__name__, "diagnostics": [asdict(item) for item in error.diagnostics]}
        code = b""
    with os.fdopen(answer, "wb") as stream:
        stream.write(json.dumps(problems).encode() + b"\n" + code)
        stream.flush()
    # Whatever the module has done to this process, its end is no answer.
    os._exit(0)


def _parse(data: bytes, name: str) -> bytes:
    """Return a module as bytecode or text that was read again."""
    from shardy_py.frontends.mlir.importer import import_native
    from shardy_py.frontends.mlir.load import parse_here, verify
    from shardy_py.frontends.mlir.unicode import has_bad_strings

    module = parse_here(data, name)
    verify(module, name)
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    code = buffer.getvalue()
    if has_bad_strings(code):
        text: bytes = module.operation.get_asm(binary=True, enable_debug_info=True)
        code = text
    # What follows is what the other process will do.
    again = parse_here(code, name)
    import_native(again, name=name)
    str(again)
    return code


def _limit(size: int) -> None:
    """Bound the memory of this process, and let it end without a dump."""
    try:
        import resource
    except ImportError:  # There is no such module on Windows.
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = _LEAST_MEMORY + _MEMORY_PER_BYTE * size
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
