"""The process that runs XLA's HLO parser: some texts end it, so it runs apart from the caller.

A request is a line with what to do and the data, an answer JSON; little but jaxlib is needed. The process ends with its
parent, or when it is idle for long.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from shardy_py.support.processes.serve import ShowStep, bound_memory, serve

IDLE_SECONDS = 60
_LEAST_MEMORY = 16 * 1024**3
_MEMORY_PER_BYTE = 64
_ENTRY_LAYOUT = re.compile(r"entry_computation_layout=(\{.*?\})(?:, \w+=|\n|$)")


def main() -> None:
    """Convert the modules that the parent sends."""
    hlo = _bindings()  # First of all, so that a missing jaxlib is said before a request is read.

    def answer(request: bytes, show: ShowStep) -> bytes:
        command, _, data = request.partition(b"\n")
        bound_memory(_LEAST_MEMORY, _MEMORY_PER_BYTE, len(data))
        return json.dumps(_answer(hlo, command.decode(), data)).encode()

    serve(answer, idle_seconds=IDLE_SECONDS)


def _bindings() -> Any:
    """Return the module with HLO's bindings, which became one of its own in jaxlib 0.10."""
    try:
        import jaxlib._hlo as hlo
    except ModuleNotFoundError:
        from jaxlib import _jax as hlo
    return hlo


def _answer(hlo: Any, command: str, data: bytes) -> dict[str, str]:
    """Return the answer to a request, or XLA's error.

    Args:
        hlo: The `_bindings`.
        command: ``convert`` for HLO text to StableHLO, ``parse`` for HLO text to a serialized module, ``lower`` for
            StableHLO to a serialized module of HLO, ``raise`` for that to StableHLO.
        data: What to convert.
    """
    from jaxlib import _jax

    try:
        if command == "convert":
            return _convert(hlo, data.decode())
        if command == "parse":
            converted = hlo.hlo_module_from_text(data.decode()).as_serialized_hlo_module_proto()
        elif command == "lower":
            computation = _jax.mlir.mlir_module_to_xla_computation(data, use_tuple_args=False, return_tuple=False)
            converted = computation.as_serialized_hlo_module_proto()
        else:
            converted = _jax.mlir.hlo_to_stablehlo(data)
    except Exception as error:  # what the bindings raise has no common base
        return {"error": str(error)}
    return {"module": base64.b64encode(converted).decode()}


def _convert(hlo: Any, text: str) -> dict[str, str]:
    """Return the StableHLO bytecode of a module with its name, layouts and canonical text."""
    from jaxlib import _jax

    module = hlo.hlo_module_from_text(text)
    code = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    printed = module.to_string()
    layout = _ENTRY_LAYOUT.search(printed.split("\n", 1)[0])
    return {
        "module": base64.b64encode(code).decode(),
        "layout": layout[1] if layout else "",
        "name": module.name,
        "text": printed,
    }
