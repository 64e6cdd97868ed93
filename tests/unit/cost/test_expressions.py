"""Costs as expressions in unknown sizes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

import shardy_py as sdy
from shardy_py.cost.expressions import Polynomial
from shardy_py.errors import UnsupportedError

SCORES = """
sdy.mesh @mesh = <["d"=2]>
func.func @main(%q: tensor<?x?x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}, {}]>}, %k: tensor<?x?x8xf32>)
    -> tensor<?x?x?xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<?x?x8xf32>, tensor<?x?x8xf32>) -> tensor<?x?x?xf32>
  return %0 : tensor<?x?x?xf32>
}
"""


@pytest.fixture(scope="module")
def expressions() -> Any:
    """Return the costs of products whose rows and columns are of two unknown sizes, in batches of a third one."""
    return sdy.propagate(SCORES).cost_expressions()


def test_dimensions_that_ops_tie_are_one_size(expressions: Any) -> None:
    """The batch is one size in both operands; rows and columns are two."""
    assert expressions.sizes == (("arg0.0", "arg1.0"), ("arg0.1",), ("arg1.1",))


def test_quantities_are_polynomials(expressions: Any) -> None:
    """Each device has half of the batch."""
    assert str(expressions.quantities["total_flops"]) == "16*arg0.0*arg0.1*arg1.1"
    assert str(expressions.quantities["result_bytes"]) == "2*arg0.0*arg0.1*arg1.1"


@pytest.mark.parametrize("sizes", [(4, 6, 10), (64, 2, 2)])
def test_the_value_is_the_cost_at_these_sizes(expressions: Any, sizes: tuple[int, int, int]) -> None:
    """Also at sizes below those that were counted."""
    batch, rows, columns = sizes
    numbers = {"arg0.0": batch, "arg1.0": batch, "arg0.1": rows, "arg1.1": columns}
    cost = sdy.propagate(SCORES, sizes=numbers).cost()
    for name in ("flops", "argument_bytes", "result_bytes", "peak_bytes"):
        assert expressions.quantities[name].at(sizes) == getattr(cost, name).value


def test_the_step_says_which_sizes_are_not_rounded(expressions: Any) -> None:
    """The number of windows with a stride is rounded, unless the stride divides the size."""
    text = """
    sdy.mesh @mesh = <["d"=2]>
    func.func @main(%x: tensor<?xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}]>}, %y: tensor<?xf32>)
        -> tensor<?xf32> {
      %0 = stablehlo.constant dense<0.0> : tensor<f32>
      %1 = "stablehlo.reduce_window"(%y, %0) <{
        window_dimensions = array<i64: 1>, window_strides = array<i64: 4>
      }> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %2 = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %2 : tensor<f32>
      }) : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
      return %1 : tensor<?xf32>
    }
    """
    strided = sdy.propagate(text).cost_expressions()
    assert (expressions.step, strided.step) == (2, 128)
    assert "exact for multiples of 128" in str(strided)


def test_an_estimate_says_so() -> None:
    """Without a local program the expressions are of what shardings say, with the reason."""
    toy = sdy.Dialect("m")
    toy.op("m.f", rule="i j -> i j")
    builder = sdy.Builder(mesh={"d": 2})
    with builder.function("main", [sdy.tensor(None, 16)]) as (x,):
        builder.shard(x, '[{"d"}, {}]')
        builder.return_(builder.op("m.f", [x], [sdy.tensor(None, 16)]))
    expressions = sdy.propagate(builder.build(), registry=sdy.Registry.of([toy])).cost_expressions()
    assert str(expressions.quantities["argument_bytes"]) == "32*arg0.0"
    assert ["estimated from shardings" in note for note in expressions.notes] == [True]


def test_a_program_of_known_sizes_has_none() -> None:
    """Its cost is a number."""
    result = sdy.propagate(SCORES, sizes={"?": 4})
    with pytest.raises(UnsupportedError, match="no unknown sizes"):
        result.cost_expressions()


def test_a_polynomial_is_written_from_the_largest_term_on() -> None:
    """Signs are between the terms, and fractions are decimals."""
    terms = {(0, 0): Fraction(-3), (1, 0): Fraction(1), (1, 2): Fraction(1, 2)}
    assert str(Polynomial(("n", "m"), terms)) == "0.5*n*m^2 + n - 3"
