"""Index maps as arithmetic, and their folding."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import builtin
from xdsl.ir import Block

from shardy_py.indexing import Bound, IndexingMap, Interval
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes import apply_indexing
from shardy_py.kernels.passes.apply_indexing import AffineValue, single_map
from shardy_py.kernels.passes.simplify_affine import LowerAffine, SimplifyAffine
from tests.unit.kernels.module_texts import after, run

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

TEXT = """func.func @main(%o: tensor<64xi64>) -> tensor<64xi64> attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %m = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (EXPRESSION), domain: d0 in [0, 63]">(%t)
  %v = arith.index_cast %m : index to i64
  %r = tensor.insert %v into %o[%t] : tensor<64xi64>
  func.return %r : tensor<64xi64>
}"""
LAUNCH = Launch((1, 1, 1), (64, 1, 1))

NATURAL = ("d0 * 3 + 5", "(d0 floordiv 8) * 2 + d0 mod 8", "min(d0, 7)", "max(d0, 7) mod 5")
SIGNED = ("(-d0 + 20) floordiv 7", "(-d0 + 20) mod 7", "d0 ceildiv 5", "(d0 - 30) ceildiv 7", "(d0 - 30) mod 4 - 3")


@pytest.mark.parametrize("expression", [*NATURAL, *SIGNED])
def test_arithmetic_computes_the_map(expression: str) -> None:
    """Both passes together leave no map, and the arithmetic gives the map's numbers, also below zero."""
    text = TEXT.replace("EXPRESSION", expression)
    lowered = after(text, SimplifyAffine(), LowerAffine())
    assert "apply_indexing" not in lowered
    like = np.zeros(64, np.int64)
    np.testing.assert_array_equal(run(lowered, like=like, launch=LAUNCH), run(text, like=like, launch=LAUNCH))


@pytest.mark.parametrize("expression", NATURAL)
def test_numbers_that_are_not_negative(expression: str) -> None:
    """Where nothing is negative, divisions are those without a sign, and sums and products do not wrap."""
    actual = after(TEXT.replace("EXPRESSION", expression), SimplifyAffine())
    assert "apply_indexing" not in actual
    assert "divsi" not in actual
    assert "remsi" not in actual
    assert all("overflow<nsw,nuw>" in line for line in actual.splitlines() if "arith.muli" in line)


@pytest.mark.parametrize("expression", SIGNED)
def test_divisions_of_negative_numbers_are_left(expression: str) -> None:
    """A map that divides what may be negative, or rounds up, is left to the later pass."""
    assert "apply_indexing" in after(TEXT.replace("EXPRESSION", expression), SimplifyAffine())


pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")


def test_unused_variables_take_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simplifying one of many indices costs no more for the others; what was given of equal values is met."""
    sizes: list[int] = []
    simplify = apply_indexing.simplify

    def counted(map_: IndexingMap) -> IndexingMap:
        sizes.append(len(map_.dims))
        return simplify(map_)

    monkeypatch.setattr(apply_indexing, "simplify", counted)
    values = Block(arg_types=[builtin.IndexType()] * 50).args
    affine = AffineValue()
    variables = [affine.variable(value, Bound(Interval(0, 9))) for value in values]
    assert affine.variable(values[7], Bound(Interval(3, 20))) == variables[7]
    map_, operands = single_map(variables[7] + 1, affine)
    assert (str(map_), operands) == ("(d0) -> (d0 + 1), domain: d0 in [3, 9]", [values[7]])
    assert max(sizes) == 1
