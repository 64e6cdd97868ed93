"""Run programs of JAX through propagation on eight host devices, and print how far they are from plain JAX.

Started by test_jax_programs.py in a process of its own, since JAX counts its devices once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import shardy_py as sdy

sys.path.insert(0, str(Path(__file__).parent))

from jax_programs import MESH, PROGRAMS, JaxProgram


def difference(first: object, other: object) -> float:
    """Return the largest difference of two arrays, in units of the largest element."""
    a, b = (np.asarray(array).astype(np.complex128) for array in (first, other))
    assert a.shape == b.shape
    if not a.size:
        return 0.0
    assert np.isfinite(b).all(), "the program itself gives no finite numbers"
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) if np.isfinite(a).all() else float("inf")


def check(program: JaxProgram, *, inline: bool = False) -> float:
    """Return the largest difference of all results from those of plain JAX."""

    def shardings(specs: object) -> object:
        return jax.tree.map(
            lambda spec: NamedSharding(MESH, spec), specs, is_leaf=lambda x: isinstance(x, PartitionSpec)
        )

    more = {} if program.out_specs is None else {"out_shardings": shardings(program.out_specs)}
    jitted = jax.jit(
        program.function,
        in_shardings=shardings(program.specs),
        donate_argnums=program.donated,
        keep_unused=True,
        **more,
    )
    run = sdy.propagate(jitted.lower(*program.arguments)).to_jax()
    actual = jax.tree.leaves(run(*jax.tree.leaves(program.arguments)))
    expected = jax.tree.leaves(jax.jit(program.function)(*program.arguments))
    assert len(actual) == len(expected)
    assert [array.dtype for array in actual] == [array.dtype for array in expected]
    return max(difference(left, right) for left, right in zip(actual, expected, strict=True))


def main() -> None:
    """Print one JSON object a line: the name of a program and its difference."""
    for make in PROGRAMS:
        if len(sys.argv) < 2 or make.__name__ in sys.argv[1:]:
            print(json.dumps({"program": make.__name__, "difference": check(make())}), flush=True)


if __name__ == "__main__":
    main()
