"""Places that a user can constrain."""

from __future__ import annotations

import pytest
from attrs import evolve

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

from shardy_py.cost.advice.advise import advise_session
from shardy_py.cost.advice.arguments import AdviceOptions
from shardy_py.cost.advice.constraint_locations import find_places
from shardy_py.cost.advice.source_lines import changed_line
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
    assert sorted({name.split()[0] for place in places.values() for name in place.names}) == ["%0", "%2"]


@pytest.mark.parametrize(("tried", "words"), [(1, "1 outcome was tried"), (2, "2 outcomes were tried")])
def test_the_number_of_outcomes_is_said_in_words_that_fit(tried, words):
    """One outcome is not several."""
    advice = advise_session(Session.open(SCALED, keep_names=True), AdviceOptions())
    assert evolve(advice, tried=tried).nothing_saved.endswith(words)


STEP = """\
#at = loc("model.py":7:3)
#line6 = loc("model.py":6:3)
#line5 = loc("model.py":5:3)
#line9 = loc("model.py":9:3)
#sum = loc("jit(step)/jvp()/add"(#line6))
#mean = loc("jit(step)/jvp()/reduce_sum"(#line5))
#keep = loc("jit(step)/jvp()/broadcast_in_dim"(#line5))
#square = loc("jit(step)/jvp()/mul"(#at))
#back = loc("jit(step)/transpose(jvp())/mul"(#at))
#behind = loc("jit(step)/transpose(jvp())/mul"(#line9))
func.func @main(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x1xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %x, %y : tensor<8x8xf32> loc(#square)
  %1 = stablehlo.add %0, %x : tensor<8x8xf32> loc(#sum)
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32> loc(#mean)
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<8xf32>) -> tensor<8x1xf32> loc(#keep)
  %4 = stablehlo.multiply %1, %y : tensor<8x8xf32> loc(#behind)
  %5 = stablehlo.multiply %4, %y : tensor<8x8xf32> loc(#back)
  return %5, %3 : tensor<8x8xf32>, tensor<8x1xf32>
}
"""


def test_a_constraint_shards_the_gradient_of_its_line_too():
    """What transposed ops of the line read is sharded with what the line makes, through an addition as well."""
    session = Session.open(STEP, keep_names=True)
    places = {place.names[0].split()[0]: place for place in find_places(session, session_labels(session)).values()}
    assert [name.split()[0] for name in places["%0"].gradient_names] == ["%4"]
    assert [name.split()[0] for name in places["%1"].gradient_names] == ["%4"]


def test_a_part_of_an_expression_is_no_place():
    """The sums within a mean that keeps its dimensions have no name in the source; the mean has."""
    session = Session.open(STEP, keep_names=True)
    names = {place.names[0].split()[0] for place in find_places(session, session_labels(session)).values()}
    assert "%2" not in names
    assert "%3" in names


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        ("1:4", "y = constrain(f(a @ b) + c, s)"),
        ("1:6", "y = f(constrain(a @ b, s)) + c"),
        ("2:4", "z = constrain(y * g(é) * y, s)"),
        ("2:8", "z = y * constrain(g(é), s) * y"),
        ("3:4", None),
        ("9:4", None),
    ],
)
def test_a_constraint_is_a_change_of_the_line(tmp_path, place, changed):
    """It stands around the one expression that begins at the place; of operators the outermost."""
    file = tmp_path / "model.py"
    file.write_text("y = f(a @ b) + c\nz = y * g(é) * y\nw = f(a)(b)\n", encoding="utf-8")
    lines = changed_line(f"{file}:{place}", "x = constrain(x, s)")
    assert (None if lines is None else lines[1]) == changed


OF_A_TREE = """\
#weight = loc("model.py":9:12)
#step = loc("jit(step)/mul"(#weight))
#kept = loc("jit(step)/jvp()/tanh"(#weight))
#back = loc("jit(step)/transpose(jvp())/mul"(#weight))
func.func @main(%a: tensor<8x4xf32>, %b: tensor<TYPExf32>) -> (tensor<8x4xf32>, tensor<TYPExf32>, tensor<8x4xf32>) {
  %0 = stablehlo.multiply %a, %a : tensor<8x4xf32> loc(#step)
  %1 = stablehlo.multiply %b, %b : tensor<TYPExf32> loc(#step)
  %2 = stablehlo.tanh %a : tensor<8x4xf32> loc(#kept)
  %3 = stablehlo.multiply %2, %2 : tensor<8x4xf32> loc(#back)
  return %0, %1, %3 : tensor<8x4xf32>, tensor<TYPExf32>, tensor<8x4xf32>
}
"""


@pytest.mark.parametrize(("kind", "names"), [("8x4", ("%0", "%1")), ("4x8", None)], ids=["one type", "several"])
def test_an_expression_that_makes_tensors_of_several_types_is_no_place(kind, names):
    """A constraint written there acts on all of them; what is kept for the backward pass alone is none of them."""
    session = Session.open(OF_A_TREE.replace("TYPE", kind), keep_names=True)
    places = set(find_places(session, session_labels(session)).values())
    assert {place.names for place in places} == ({names} if names else set())
