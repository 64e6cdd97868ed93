"""Run the example training step on eight host devices and on one, and print the largest difference.

Started by test_execution.py in a process of its own, since JAX counts its devices once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.jax.compile import to_jax
from shardy_py.oracle.conformance import run
from shardy_py.plugins import Registry


def on_one_device(text: str) -> str:
    """Return the module over a mesh of the same axes, each of size 1."""
    for old, new in (
        ('"data"=4, "model"=2', '"data"=1, "model"=1'),
        ("size = 4 : i64", "size = 1 : i64"),
        ("size = 2 : i64", "size = 1 : i64"),
        ("num_partitions = 8", "num_partitions = 1"),
    ):
        assert old in text, f"the example changed: {old!r} is not in it"
        text = text.replace(old, new)
    return text


def main() -> None:
    """Compile both, run both on the same random arrays, compare."""
    text = Path(sys.argv[1]).read_text()
    registry = Registry.from_entry_points()
    sharded_module = parse_module(run(text, "sdy-propagation-pipeline"))
    sharded = to_jax(sharded_module, semantics=registry)
    unsharded = to_jax(parse_module(on_one_device(text)), semantics=registry)
    random = np.random.default_rng(0)
    arguments = []
    for value in import_module(sharded_module).functions["main"].regions[0].block.arguments:
        if value.type.element_type == "f32":
            # Adam's second moments are squares: positive numbers keep every argument meaningful.
            arguments.append(np.abs(random.standard_normal(value.shape)).astype(np.float32) * 0.02)
        else:
            arguments.append(random.integers(0, 100, value.shape).astype(np.int32))
    differences = [
        float(np.max(np.abs(np.asarray(left, np.float64) - np.asarray(right, np.float64))))
        for left, right in zip(sharded(*arguments), unsharded(*arguments), strict=True)
    ]
    devices = sorted({len(left.device_set) for left in sharded.in_shardings})
    print(json.dumps({"results": len(differences), "largest": max(differences), "devices": devices}))


if __name__ == "__main__":
    main()
