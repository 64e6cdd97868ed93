"""Names of values and ops, as they were given and of ops without a rule."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")


from shardy_py.cost.session import Session
from tests.unit.explain.explained import MESH, sharded
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


def test_names_stay_while_passes_move_values() -> None:
    """A call becomes a computation, its callee goes; the labels have the names that were there before."""
    session = Session.open(
        f"""{MESH}func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = func.call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }}
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }}""",
        keep_names=True,
    )
    assert session.names is not None
    labels = session.names.labels(session.program, session.problem, session.copies)
    assert {"%arg0", "%0", "result0", "@f:%arg0", "@f:%0"} <= set(labels.slots)


def test_an_op_without_a_rule_is_known_at_each_of_its_tensors() -> None:
    """Ops with a rule, returns and data flow are not among them."""
    trace = trace_of(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = "toy.mystery"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          %1 = stablehlo.optimization_barrier %0 : tensor<8xf32>
          %2 = stablehlo.negate %1 : tensor<8xf32>
          return %2 : tensor<8xf32>
        }}"""
    )
    slots = trace.labels.slots
    actual = {
        name: [str(op) for op, _ in trace.ops_without_rule.get(slots[name], ())] for name in ("%arg0", "%0", "%2")
    }
    assert actual == {"%arg0": ["toy.mystery %0"], "%0": ["toy.mystery %0"], "%2": []}
