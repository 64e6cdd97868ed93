"""Propagate programs of JAX, compile them with `jax.jit`, and print what differs.

Started by test_jit_programs.py in a process of its own, since JAX counts its devices once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax

import shardy_py as sdy

sys.path.insert(0, str(Path(__file__).parent))

from jit_programs import PROGRAMS


def main() -> None:
    """Print one JSON object a line: the name of a program, and the comparison where anything differs."""
    for name in sys.argv[1:] or PROGRAMS:
        function, arguments, options = PROGRAMS[name]
        result = sdy.propagate(jax.jit(function, **options).lower(*arguments))
        comparison = result.compare_jit()
        is_equal = comparison.equal and comparison.ops > 0 and result.like == "jit" and not comparison.notes
        print(json.dumps({"program": name, "difference": "" if is_equal else str(comparison)}), flush=True)


if __name__ == "__main__":
    main()
