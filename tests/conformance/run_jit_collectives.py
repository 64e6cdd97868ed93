"""Run programs of JAX by `sdy.jit` in the default order and by `jax.jit`, and print the collectives that differ.

Started by test_jit_programs.py in a process of its own, since JAX counts its devices once. XLA compiles both programs;
a collective in a loop counts once for each time that the loop runs.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

import shardy_py as sdy
from shardy_py.jax.jit_decisions import collectives_of

sys.path.insert(0, str(Path(__file__).parent))

from jit_programs import PROGRAMS

THROUGH_XLA = {"partitioner": "xla"} if "partitioner" in inspect.signature(sdy.jit).parameters else {}
"""The options by which `sdy.jit` runs through XLA's partitioner, as `jax.jit` does."""


def counted(collectives: Sequence[Any]) -> Counter[tuple[str, float]]:
    """Return how often a device sends each kind of message of each size."""
    runs: Counter[tuple[str, float]] = Counter()
    for item in collectives:
        runs[item.kind, item.bytes] += item.runs
    return runs


def main() -> None:
    """Print one JSON object a line: the name of a program, its collectives by `sdy.jit`, and those by `jax.jit`."""
    count = len(jax.devices())
    for name in sys.argv[1:] or PROGRAMS:
        function, arguments, options = PROGRAMS[name]
        ours = sdy.jit(function, **options, **THROUGH_XLA).lower(*arguments).compile()
        theirs = jax.jit(function, **options).lower(*arguments).compile().runtime_executable()
        here, jit = (counted(collectives_of(item, count)) for item in (ours.executable, theirs))
        line = {"program": name, "runs": sum(jit.values()), "difference": "" if here == jit else f"{here} {jit}"}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
