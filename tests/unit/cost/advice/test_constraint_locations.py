"""Places that a user can constrain."""

from __future__ import annotations

import pytest
from attrs import evolve

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

from shardy_py.cost.advice.advise import advise_session
from shardy_py.cost.advice.arguments import AdviceOptions
from shardy_py.cost.advice.constraint_locations import find_places
from shardy_py.cost.session import Session, session_labels

SCALED = """\
#at = loc("model.py":7:3)
#made = loc("jit(step)/broadcast_in_dim"(#at))
#scaled = loc("jit(step)/mul"(#at))
func.func @main(%x: tensor<8x8xf32>, %rate: tensor<f32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<8x8xf32> loc(#made)
  %1 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<8x8xf32> loc(#scaled)
  %2 = stablehlo.multiply %x, %1 : tensor<8x8xf32> loc(#scaled)
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}
"""


def test_broadcasts_within_an_op_are_no_places():
    """A user may write the first broadcast, and the product, but not the operand that JAX makes for the product."""
    session = Session.open(SCALED, keep_names=True)
    places = find_places(session, session_labels(session))
    assert sorted(place.names[0].split()[0] for place in places.values()) == ["%0", "%2"]


@pytest.mark.parametrize(("tried", "words"), [(1, "1 outcome was tried"), (2, "2 outcomes were tried")])
def test_the_number_of_outcomes_is_said_in_words_that_fit(tried, words):
    """One outcome is not several."""
    advice = advise_session(Session.open(SCALED, keep_names=True), AdviceOptions())
    assert evolve(advice, tried=tried).nothing_saved.endswith(words)
