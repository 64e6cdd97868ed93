"""How to ask for explanations, and how they read."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py import OptionError, Result, propagate
from shardy_py.explain.record.reasons import MEANINGS, Reason
from tests.unit.explain.explained import MESH, sharded, traced

BODY = f"""func.func @main(%arg0: tensor<8x16xf32> {sharded('[{"a"}, {?}]')} loc("params['w']"),
    %arg1: tensor<16x4xf32> {sharded('[{"b"}, {"a"}]')}) -> (tensor<8x4xf32> {{jax.result_info = "result['y']"}}) {{
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("model.py":12:3)
  %1 = stablehlo.negate %0 : tensor<8x4xf32> loc("model.py":1:3)
  %2 = stablehlo.negate %1 : tensor<8x4xf32> loc("model.py":120:3)
  return %2 : tensor<8x4xf32>
}}"""


@pytest.fixture(scope="module")
def result() -> Result:
    """A traced run."""
    return traced(BODY)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("%0", "%0"),
        ("0", "%0"),
        ("%arg1", "%arg1"),
        ("arg1", "%arg1"),
        (1, "%arg1"),
        ("result0", "result['y']"),
        ("params['w']", "params['w']"),
        ("result['y']", "result['y']"),
        ("stablehlo.dot_general", "%0"),
        ("stablehlo.negate#1", "%2"),
        ("model.py:12", "%0"),
        ("model.py:120", "%2"),
    ],
)
def test_a_value_is_found_by_what_users_know_it_by(result: Result, key: int | str, name: str) -> None:
    """Its printed name, a number, its op, its place, or the name that the user's program gives it."""
    for names in ("input", "result"):
        assert result.explain(key, names=names).value == name


def test_a_native_value_and_a_value_of_the_program_are_found(result: Result) -> None:
    """As for shardings."""
    value = result.value("%0")
    assert result.explain(value).value == "%0"


@pytest.mark.parametrize(
    ("key", "dim", "code"),
    [
        ("%77", None, "unknown-value"),
        ("stablehlo.negate", None, "ambiguous-op"),
        ("stablehlo.negate#2", None, "unknown-value"),
        ("%0", 2, "unknown-dimension"),
        ("%0", -1, "unknown-dimension"),
    ],
)
def test_what_is_not_there_is_an_error_with_a_hint(result: Result, key: str, dim: int | None, code: str) -> None:
    """Unknown and ambiguous names, and dimensions out of range."""
    with pytest.raises(OptionError) as error:
        result.explain(key, dim)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == code
    assert diagnostic.hint


def test_only_a_traced_run_can_be_explained() -> None:
    """The error says how to trace."""
    result = propagate(MESH + BODY)
    assert result.trace is None
    with pytest.raises(OptionError, match="trace=True"):
        result.explain("%0")


def test_names_of_the_result_are_those_of_its_text() -> None:
    """A constant that was copied moves the numbers on; the names of the input stay those of the input."""
    body = f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}, %arg1: tensor<8xf32> {sharded('[{"b"}]')})
        -> (tensor<8xf32>, tensor<8xf32>) {{
      %cst = stablehlo.constant dense<1.0> : tensor<8xf32>
      %0 = stablehlo.add %arg0, %cst : tensor<8xf32>
      %1 = stablehlo.add %arg1, %cst : tensor<8xf32>
      return %0, %1 : tensor<8xf32>, tensor<8xf32>
    }}"""
    result = traced(body)
    for name in ("%0", "%1", "%2", "%3"):
        sharding = result.sharding(name)
        assert sharding is not None
        assert result.explain(name).final == str(sharding)
    assert result.explain("%cst for %1", names="input").final == str(result.sharding("%1"))
    with pytest.raises(OptionError, match="take one of %cst for %0, %cst for %1"):
        result.explain("%cst", names="input")


def test_the_text_names_chain_level_and_losing_candidate(result: Result) -> None:
    """All that the values hold is readable."""
    text = str(result.explain("%0"))
    move = "%0 dim 0 <- params['w'] dim 0 \"a\": forward through stablehlo.dot_general %0 at model.py:12:3, factor i"
    assert move in text
    assert "level 2 (pass-through factors, broadcasts backward), aggressive" in text
    assert "params['w'] dim 0: annotated <@mesh, [{\"a\"}, {?}]>" in text
    assert 'lost: "a" on %arg1 dim 1 (from function argument %arg1) stopped at stablehlo.dot_general %0' in text
    assert "no-dimension" in text


def test_an_op_is_explained_with_its_factors_and_what_went_through(result: Result) -> None:
    """Rule, kinds, directions level by level, moves and refusals."""
    one = result.explain_op("model.py:12")
    assert one.op == "stablehlo.dot_general %0"
    assert [(factor.factor, factor.kind) for factor in one.factors] == [
        ("i", "pass_through"),
        ("j", "pass_through"),
        ("k", "reduction"),
    ]
    assert one.factors[2].directions == ("none", "none", "none", "both", "both")
    assert one.factors[2].places == ("params['w'] dim 1", "%arg1 dim 0")
    moves = [(move.value, move.dimension, move.source, move.axis) for move in one.accepted]
    assert moves == [("%0", 0, "params['w']", '"a"'), ("params['w']", 1, "%arg1", '"b"')]
    assert {reason.code for reason in one.refused} == {"lost", "overlap"}
    assert "directions by level: none, none, none, both, both" in str(one)


def test_an_op_without_a_rule_cannot_be_explained(result: Result) -> None:
    """An argument is made by no op."""
    with pytest.raises(OptionError) as error:
        result.explain_op("%arg0")
    assert error.value.diagnostics[0].code == "unknown-op"


def test_the_trace_lists_updates_and_refusals(result: Result) -> None:
    """Each with where it happened."""
    trace = result.trace
    assert trace is not None
    assert [update.op.name for update in trace.updates][:2] == ["stablehlo.dot_general", "stablehlo.negate"]
    lost = [one for one in trace.refusals() if one.reason is Reason.LOST]
    labels = trace.labels
    assert [(labels.of_step[one.step].name, one.slot_dim[1], str(one.axis), one.place.level) for one in lost] == [
        ("stablehlo.dot_general", 1, '"a"', 2)
    ]
    assert labels.value(lost[0].slot_dim[0]) == "%0"


def test_the_trace_lists_every_axis_that_moved(result: Result) -> None:
    """With value, dimension, op, factor, direction and place; the changes of the updates are made of these."""
    trace = result.trace
    assert trace is not None
    moves = list(trace.moves())
    names = trace.labels
    first = moves[0]
    assert (names.value(first.slot), first.dimension, str(first.axis)) == ("%0", 0, '"a"')
    assert (names.of_step[first.step].name, first.factor, first.direction) == ("stablehlo.dot_general", 0, "forward")
    assert (first.place.user_priority, first.place.level, first.place.strategy.value) == (0, 2, "aggressive")
    gained = 0
    for update in trace.updates:
        for change in update.changes:
            before = sum(len(dim.axes) for dim in change.old.dim_shardings) if change.old else 0
            gained += sum(len(dim.axes) for dim in change.new.dim_shardings) - before
    assert len(moves) == gained > 0


def test_every_reason_has_a_meaning() -> None:
    """One line for each code."""
    assert set(MEANINGS) == set(Reason)


@pytest.mark.parametrize("names", ["input", "result"])
def test_a_value_that_cannot_be_sharded_is_an_error_of_its_own(names: str) -> None:
    """Such as an argument of the body of a reduction."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}, {?}]')}) -> tensor<8xf32> {{
          %cst = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.reduce(%arg0 init: %cst) across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>)
              -> tensor<8xf32> reducer(%arg1: tensor<f32>, %arg2: tensor<f32>) {{
            %1 = stablehlo.add %arg1, %arg1 : tensor<f32>
            stablehlo.return %1 : tensor<f32>
          }}
          return %0 : tensor<8xf32>
        }}"""
    )
    assert "%arg1: tensor<f32>" in result.text
    with pytest.raises(OptionError) as error:
        result.explain("%arg1", names=names)
    assert error.value.diagnostics[0].code == "unsharded-value"


def test_a_result_of_another_function_is_what_it_returns() -> None:
    """By the name that the function gives it."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }}
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }}"""
    )
    assert result.explain("@f:result0").sharding == result.explain("@f:%0").sharding != ""
    assert result.explain("%0").dimensions[0].present[0].origin.annotation == "function argument %arg0"


def test_what_waits_for_its_user_priority_is_refused_for_that() -> None:
    """A dimension of a later priority is closed before, and its axes are kept free; neither is the user's doing."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}p1, {?}]')},
                            %arg1: tensor<8x8xf32> {sharded('[{"b"}, {"a"}]')}) -> tensor<8x8xf32> {{
          %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}"""
    )
    trace = result.trace
    assert trace is not None
    early = {
        (one.slot_dim[1], str(one.axis), one.reason, one.detail.partition(" ")[0])
        for one in trace.refusals()
        if one.place.user_priority == 0 and trace.labels.value(one.slot_dim[0]) == "%arg0" and one.place.level > 0
    }
    assert (0, '"b"', Reason.PRIORITY, "closed") in early
    assert (1, '"a"', Reason.PRIORITY, "replicated") in early
    assert not any(one[2] in (Reason.CLOSED, Reason.REPLICATED) for one in early)
