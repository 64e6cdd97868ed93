"""The process that runs XLA's HLO parser: some texts end it, so it runs apart from the caller.

It reads HLO text from stdin and writes one line of JSON to stdout; only jaxlib is needed.
"""

from __future__ import annotations

import base64
import json
import re
import sys

_ENTRY_LAYOUT = re.compile(r"entry_computation_layout=(\{.*?\})(?:, \w+=|\n|$)")


def main() -> None:
    """Convert the module on stdin."""
    import jaxlib._hlo as hlo
    from jaxlib import _jax

    text = sys.stdin.buffer.read().decode()
    try:
        module = hlo.hlo_module_from_text(text)
        code = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    except Exception as error:  # what the bindings raise has no common base
        print(json.dumps({"error": str(error)}))
        return
    layout = _ENTRY_LAYOUT.search(module.to_string().split("\n", 1)[0])
    answer = {"module": base64.b64encode(code).decode(), "layout": layout[1] if layout else "", "name": module.name}
    answer["text"] = module.to_string()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
