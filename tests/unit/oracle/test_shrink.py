"""The reducer."""

import pytest

pytest.importorskip("jaxlib")

from shardy_py.oracle.generate import generate
from shardy_py.oracle.reference import Reference
from shardy_py.oracle.shrink import shrink


def test_what_does_not_matter_goes():
    """A program is reduced to the one op that the predicate asks for, and stays valid."""
    seed = next(seed for seed in range(50) if "stablehlo.transpose" in generate(seed, size=12))
    small = shrink(generate(seed, size=12), lambda text: "stablehlo.transpose" in text)
    ops = [line for line in small.splitlines() if " = " in line and not line.strip().startswith("sdy.mesh")]
    assert len(ops) <= 2
    assert "sdy.sharding" not in small
    with Reference() as reference:
        assert reference.run(small).ok


def test_a_predicate_that_needs_everything_keeps_everything():
    """Nothing is removed that the predicate misses."""
    text = "func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {\n  return %arg0 : tensor<8xf32>\n}\n"
    assert "return %arg0 : tensor<8xf32>" in shrink(text, lambda smaller: "return %arg0 : tensor<8xf32>" in smaller)
