"""Propagate a program of the toy dialect, and ask why a tensor has its sharding; needs the extra `xdsl`.

The dialect is a package with tests of its own, in ``examples/toy_dialect``: attention with shared heads, a loop, top-k.
Neither jaxlib nor StableHLO is imported.

    python examples/dialect_author/propagate_toy.py
"""

import sys
from pathlib import Path

import shardy_py as sdy

TOY = Path(__file__).resolve().parents[1] / "toy_dialect"
sys.path.insert(0, str(TOY))
import toy_dialect  # noqa: E402  the package is not installed here

registry = sdy.Registry.of([toy_dialect.toy])
result = sdy.propagate(
    TOY / "program.xdsl",
    {"data": 2, "model": 2},
    in_shardings={0: ("data", None), 1: (None, "model")},
    registry=registry,
    trace=True,
)
for name in ("x", "w", "scale", "bias", "normed", "dot", "y", "more", "best"):
    value = result.value(name)
    op = value.defining_op.name if value.defining_op else "argument"
    print(f"{name:8}{value.type!s:18}{op:14}{result.sharding(name)}")
print()
print(result.explain("best", 0))
