"""The process that runs XLA's HLO parser: some texts end it, so it runs apart from the caller.

It reads requests from stdin, each a line with what to do and the number of bytes that follow, and answers each with one
line of JSON on stdout; only jaxlib is needed. It ends with its input, or when it is idle for long.
"""

from __future__ import annotations

import base64
import json
import re
import signal
import sys
from typing import Any

IDLE_SECONDS = 60
_ENTRY_LAYOUT = re.compile(r"entry_computation_layout=(\{.*?\})(?:, \w+=|\n|$)")


def main() -> None:
    """Answer the requests on stdin."""
    hlo = _bindings()  # First of all, so that a missing jaxlib is said before a request is read.
    while True:
        _set_alarm(IDLE_SECONDS)
        head = sys.stdin.buffer.readline()
        _set_alarm(0)
        if not head:
            return
        what, size = head.decode().split()
        print(json.dumps(_answer(hlo, what, sys.stdin.buffer.read(int(size)))), flush=True)


def _bindings() -> Any:
    """Return the module with HLO's bindings, which became one of its own in jaxlib 0.10."""
    try:
        import jaxlib._hlo as hlo
    except ModuleNotFoundError:
        from jaxlib import _jax as hlo
    return hlo


def _set_alarm(seconds: int) -> None:
    """End this process after some seconds, where the system can do so; 0 takes that back."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def _answer(hlo: Any, what: str, data: bytes) -> dict[str, str]:
    """Return the answer to a request, or XLA's error.

    Args:
        hlo: The `_bindings`.
        what: ``convert`` for HLO text to StableHLO, ``parse`` for HLO text to a serialized module, ``lower`` for
            StableHLO to a serialized module of HLO, ``raise`` for that to StableHLO.
        data: What to convert.
    """
    from jaxlib import _jax

    try:
        if what == "convert":
            return _convert(hlo, data.decode())
        if what == "parse":
            converted = hlo.hlo_module_from_text(data.decode()).as_serialized_hlo_module_proto()
        elif what == "lower":
            found = _jax.mlir.mlir_module_to_xla_computation(data, use_tuple_args=False, return_tuple=False)
            converted = found.as_serialized_hlo_module_proto()
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


if __name__ == "__main__":
    main()
