"""The process that parses modules of unknown origin for `shardy_py.frontends.mlir.isolated_parse`."""

from __future__ import annotations

import io
from contextlib import suppress
from importlib import import_module

from shardy_py.frontends.isolation import answer_reader


def main() -> None:
    """Parse the module that the parent sends."""
    answer_reader(_prepare, _parse)


def _prepare(data: bytes) -> None:
    import_module("shardy_py.frontends.mlir.importer")
    load = import_module("shardy_py.frontends.mlir.load")
    if load.is_serialized_export(data):
        # Without JAX the error is that of reading.
        with suppress(ImportError):
            import_module("jax._src.export.serialization")


def _parse(data: bytes, name: str) -> bytes:
    """Return a module as bytecode or text that was read again."""
    from shardy_py.frontends.mlir.importer import import_native
    from shardy_py.frontends.mlir.load import has_bad_strings, parse_here, verify

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
