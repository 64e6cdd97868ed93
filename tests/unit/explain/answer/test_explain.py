"""Explanations of ops, of tensors, and of where one more visit would change a sharding."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")


from shardy_py import OptionError, Result
from shardy_py.explain.answer.explanations import NotSettled, find_unsettled
from tests.unit.explain.explained import NAMED, sharded, traced
from tests.unit.explain.programs import product


@pytest.fixture(scope="module")
def result() -> Result:
    """A traced run."""
    return traced(NAMED)


def test_an_op_is_explained_with_its_factors_and_what_went_through(result: Result) -> None:
    """Rule, kinds, directions level by level, moves and refusals."""
    single = result.explain_op("model.py:12")
    assert single.op == "stablehlo.dot_general %0"
    assert [(factor.factor, factor.kind) for factor in single.factors] == [
        ("i", "pass_through"),
        ("j", "pass_through"),
        ("k", "reduction"),
    ]
    assert single.factors[2].directions == ("none", "none", "none", "both", "both")
    assert single.factors[2].places == ("params['w'] dim 1", "%arg1 dim 0")
    moves = [(move.value, move.dimension, move.source, move.axis) for move in single.accepted]
    assert moves == [("%0", 0, "params['w']", '"a"'), ("params['w']", 1, "%arg1", '"b"')]
    assert {reason.code for reason in single.refused} == {"lost", "overlap"}
    assert "directions by level: none, none, none, both, both" in str(single)


def test_an_op_without_a_rule_cannot_be_explained(result: Result) -> None:
    """An argument is made by no op."""
    with pytest.raises(OptionError) as error:
        result.explain_op("%arg0")
    assert error.value.diagnostics[0].code == "unknown-op"


BODY = f"""func.func @main(%arg0: tensor<8x17xf32> {sharded('[{"a"}, {?}]')} loc("x"), %arg1: tensor<17xf32> loc("b"))
    -> tensor<8x17xf32> {{
  %0 = stablehlo.negate %arg0 : tensor<8x17xf32> loc("/home/user/model.py":3:1)
  return %0 : tensor<8x17xf32>
}}"""


def test_the_first_line_names_value_type_op_and_place() -> None:
    """An argument with a name of its own is shown with the one in the text."""
    result = traced(BODY)
    assert str(result.explain("%0")).startswith("%0: tensor<8x17xf32>, made by stablehlo.negate %0 at model.py:3:1\n")
    argument = result.explain("%arg0", dim=0)
    assert (argument.value, argument.printed) == ("x", "%arg0")
    assert str(argument).startswith("x = %arg0: tensor<8x17xf32>\n")
    assert "function argument x, dimension 0" in str(argument)


def test_only_the_dimension_that_is_asked_for_is_explained() -> None:
    """All of them by default."""
    result = traced(BODY)
    assert [item.dimension for item in result.explain("%0").dimensions] == [0, 1]
    assert [item.dimension for item in result.explain("%0", dim=1).dimensions] == [1]


def test_the_text_names_chain_level_and_losing_candidate(result: Result) -> None:
    """All that the values hold is readable."""
    text = str(result.explain("%0"))
    move = "%0 dim 0 <- params['w'] dim 0 \"a\": forward through stablehlo.dot_general %0 at model.py:12:3, factor i"
    assert move in text
    assert "level 2 (pass-through factors, broadcasts backward), aggressive" in text
    assert "params['w'] dim 0: annotated <@mesh, [{\"a\"}, {?}]>" in text
    assert 'lost: "a" on %arg1 dim 1 (from function argument %arg1) stopped at stablehlo.dot_general %0' in text
    assert "no-dimension" in text


def test_a_settled_run_has_no_such_place() -> None:
    """Every step sees what it saw in its last visit."""
    trace = product()
    assert list(find_unsettled(trace, trace.labels)) == []


def test_a_place_is_one_line() -> None:
    """With the place of the op, where it is known."""
    single = NotSettled("toy.dot %0", "/x/model.py:7:8", "%0", 0, '"a"', "x", 1, "i")
    assert str(single) == '%0 dim 0 <- x dim 1 "a": through toy.dot %0 at model.py:7:8, factor i'
