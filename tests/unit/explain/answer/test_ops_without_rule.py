"""Explanations of ops through which nothing propagates."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

import shardy_py as sdy
from shardy_py.explain.reports import explanation_json

TEXT = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.custom_call @first(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.negate %0 : tensor<8x4xf32>
  %2:2 = stablehlo.custom_call @Sharding(%1) : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  stablehlo.custom_call @sink(%2#1) {has_side_effect = true} : (tensor<8x4xf32>) -> ()
  %cst = stablehlo.constant dense<1.0> : tensor<8x4xf32>
  %3 = stablehlo.add %2#0, %cst : tensor<8x4xf32>
  %4 = "toy.mystery"(%3) {window = 3 : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}
"""


@pytest.fixture(scope="module")
def result() -> sdy.Result:
    """A traced run."""
    return sdy.propagate(TEXT, trace=True)


@pytest.mark.parametrize("key", ["toy.mystery", "%4", "-:9", "toy.mystery %4", "toy.mystery#0"])
def test_an_op_without_a_rule_is_found(result: sdy.Result, key: str) -> None:
    """By its name, result, location or number; the answer has its tensors and says that it has no rule."""
    answer = result.explain_op(key, names="input")
    assert answer.op == "toy.mystery %4"
    assert answer.rule == ""
    assert answer.attributes == "window = 3"
    assert [tensor.value for tensor in answer.tensors] == ["%3", "%4"]
    assert "rule: none" in str(answer)
    assert "nothing propagates through it: the op has no sharding rule" in str(answer)
    assert json.loads(explanation_json(answer))["no_rule"] == answer.no_rule


def test_ops_of_one_name_are_numbered_in_program_order(result: sdy.Result) -> None:
    """Whether they have a rule or not; each is told apart by its attributes."""
    answers = [result.explain_op(f"stablehlo.custom_call#{number}", names="input") for number in range(3)]
    assert ["first" in answers[0].attributes, "sink" in answers[2].attributes] == [True, True]
    with pytest.raises(sdy.OptionError, match="3 ops match") as error:
        result.explain_op("stablehlo.custom_call", names="input")
    assert "stablehlo.custom_call#2" in error.value.diagnostics[0].hint
    # Several results are found by the name that they share.
    assert result.explain_op("%2", names="input") == answers[1]


def test_an_op_is_found_by_the_kind_that_the_report_names(result: sdy.Result) -> None:
    """A user copies the name from the report of ops without a rule; a part of the target is not enough."""
    names = [item.name for item in result.coverage.missing]
    assert "stablehlo.custom_call @first" in names
    answer = result.explain_op("stablehlo.custom_call @first", names="input")
    assert answer == result.explain_op("%0", names="input")
    with pytest.raises(sdy.OptionError, match=r"has no op stablehlo\.custom_call @fir "):
        result.explain_op("stablehlo.custom_call @fir", names="input")


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("stablehlo.constant", "no operands"),
        ("func.return", "hands values on"),
        ("stablehlo.custom_call#2", "no results"),
    ],
)
def test_the_reason_is_that_of_the_op(result: sdy.Result, key: str, reason: str) -> None:
    """A constant, a return and an op that gives nothing need no rule."""
    assert reason in str(result.explain_op(key, names="input"))


def test_a_tensor_is_made_by_an_op_without_a_rule(result: sdy.Result) -> None:
    """Its explanation names the op."""
    assert result.explain("%0", names="input").op == "stablehlo.custom_call %0"
    assert result.explain("toy.mystery", names="input").value == "%4"


def test_names_of_the_result_find_the_op_too(result: sdy.Result) -> None:
    """Constants are called as the text of the result calls them."""
    assert result.explain_op("sdy.constant").op.startswith("sdy.constant %")
    assert result.explain_op("toy.mystery").rule == ""
