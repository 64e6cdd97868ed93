"""Explanations of tensors."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py import Result
from tests.unit.explain.explained import NAMED, sharded, traced

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
    assert [one.dimension for one in result.explain("%0").dimensions] == [0, 1]
    assert [one.dimension for one in result.explain("%0", dim=1).dimensions] == [1]


@pytest.fixture(scope="module")
def result() -> Result:
    """A traced run."""
    return traced(NAMED)


def test_the_text_names_chain_level_and_losing_candidate(result: Result) -> None:
    """All that the values hold is readable."""
    text = str(result.explain("%0"))
    move = "%0 dim 0 <- params['w'] dim 0 \"a\": forward through stablehlo.dot_general %0 at model.py:12:3, factor i"
    assert move in text
    assert "level 2 (pass-through factors, broadcasts backward), aggressive" in text
    assert "params['w'] dim 0: annotated <@mesh, [{\"a\"}, {?}]>" in text
    assert 'lost: "a" on %arg1 dim 1 (from function argument %arg1) stopped at stablehlo.dot_general %0' in text
    assert "no-dimension" in text
