"""Run programs on as many host devices as their meshes have, and compare with one device.

Started by test_devices.py as a process: JAX counts its devices once, and XLA may end the process. Each line of its
input is the path of a program, and each line of its output what became of it, as a JSON object.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import shardy_py as sdy
from shardy_py.errors import UnsupportedError
from shardy_py.ir.graph.program import Program
from shardy_py.jax.running import run_result
from shardy_py.jax.unsharded import compile_unsharded

ENTROPY = "stablehlo.rng"
"""The op that gives other numbers every time."""


def random_results(program: Program) -> list[int]:
    """Return the numbers of the results of the main function that are random, because they come from such an op."""
    main = program.functions["main"]
    tainted = {result.id for op in program.walk() if op.name == ENTROPY for result in op.results}
    for op in main.regions[0].block.ops:
        if any(value.id in tainted for value in op.operands):
            tainted |= {result.id for result in op.results}
    returned = main.regions[0].block.last
    return [number for number, value in enumerate(returned.operands) if value.id in tainted]


def compare(text: str) -> dict[str, Any]:
    """Return what became of a program."""
    result = sdy.propagate(text)
    try:
        report = run_result(result, text)
    except UnsupportedError as error:
        return {"refused": str(error), "refused_on_one_device": refusal_on_one_device(text, result)}
    skipped = random_results(result.program)
    lines = [line for number, line in enumerate(report.results) if number not in skipped]
    return {
        "devices": report.devices,
        "results": len(lines),
        "apart": [str(line) for line in lines if line.difference is None or not line.difference.is_within],
        "largest": max((line.difference.relative for line in lines if line.difference), default=0.0),
    }


def refusal_on_one_device(text: str, result: sdy.Result) -> str:
    """Return the words with which XLA refuses a program on one device, or ""."""
    try:
        compile_unsharded(text, semantics=result.registry)
    except UnsupportedError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(compare(gzip.decompress(Path(line.strip()).read_bytes()).decode())), flush=True)
