"""Names of values and ops."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from tests.unit.explain.explained import sharded
from tests.unit.explain.programs import trace_of

BODY = f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')} loc("w['up']"), %arg1: tensor<8xf32> loc("same"),
                           %arg2: tensor<8xf32> loc("same")) -> (tensor<8xf32> {{jax.result_info = "result['y']"}}) {{
  %cst = stablehlo.constant dense<1.0> : tensor<8xf32>
  %0 = stablehlo.add %arg0, %cst : tensor<8xf32> loc("model.py":3:1)
  %1 = func.call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = stablehlo.add %1, %cst : tensor<8xf32>
  %3 = stablehlo.add %arg1, %arg2 : tensor<8xf32>
  %4 = stablehlo.add %2, %3 : tensor<8xf32>
  return %4 : tensor<8xf32>
}}
func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = stablehlo.negate %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""


def test_values_have_the_users_names_where_they_are_known() -> None:
    """The first of several arguments of one name has it; the name in the text is known, too."""
    labels = trace_of(BODY).labels
    names = [labels.value(labels.slots[name]) for name in ("%arg0", "%arg1", "%arg2", "result0")]
    assert names == ["w['up']", "same", "%arg2", "result['y']"]
    assert labels.printed(labels.slots["%arg0"]) == "%arg0"
    assert labels.value(-1) == "-"


def test_values_of_functions_and_copies_of_constants_have_names() -> None:
    """With the function before, with the user behind."""
    labels = trace_of(BODY).labels
    assert {"@f:%0", "@f:%arg0", "%cst for %0", "%cst for %2"} <= set(labels.slots)


def test_an_op_knows_its_results_and_its_place() -> None:
    """By the step that makes a value; an argument is made by none."""
    labels = trace_of(BODY).labels
    maker = labels.maker(labels.slots["%0"])
    assert maker is not None
    assert str(labels.of_step[maker]) == "stablehlo.add %0"
    assert labels.location(labels.slots["%0"]).startswith("model.py:3")
    assert labels.maker(labels.slots["%arg0"]) is None
    assert labels.location(labels.slots["%arg0"]) == ""


def test_renamed_labels_mark_what_has_no_new_name() -> None:
    """Old names stand in parentheses; the user's own stay."""
    labels = trace_of(BODY).labels
    slot = labels.slots["%0"]
    renamed = labels.renamed({"%7": slot}, frozenset())
    assert renamed.value(slot) == "%7"
    assert renamed.value(labels.slots["%1"]) == "(%1)"
    assert renamed.value(labels.slots["%arg0"]) == "w['up']"
