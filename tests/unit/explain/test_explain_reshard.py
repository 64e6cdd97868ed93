"""Why there is a reshard, and what would remove it."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")


import shardy_py as sdy
from shardy_py import OptionError
from shardy_py.explain.explain_reshard import ReshardExplainer
from shardy_py.explain.reports import format_reshard
from tests.unit.explain.explained import MESH, sharded


def explainer(body: str) -> ReshardExplainer:
    """Return the explainer of a module."""
    return ReshardExplainer(MESH + body)


def product() -> ReshardExplainer:
    """Return a product of two matrices, of which one has to be moved and the result summed over devices."""
    return explainer(
        f"""func.func @main(%arg0: tensor<8x16xf32> {sharded('[{"a"}, {?}]')},
                            %arg1: tensor<16x4xf32> {sharded('[{"b"}, {"a"}]')}) -> tensor<8x4xf32> {{
          %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
              : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }}"""
    )


def test_all_communication_is_listed_in_program_order() -> None:
    """With its number, what is moved, and for what."""
    lines = product().lines()
    assert [(line.number, line.kind, line.value) for line in lines] == [
        (0, "sdy.reshard", "%arg1"),
        (1, "sdy.all_reduce", "%0"),
    ]
    assert lines[0].where == "operand 1 of stablehlo.dot_general %0"
    assert (lines[0].before, lines[0].after) == ('<@mesh, [{"b"}, {"a"}]>', '<@mesh, [{"b"}, {}]>')


def test_a_reshard_names_what_the_tensor_loses_and_why_that_did_not_go_on() -> None:
    """The axis, its annotation, and the candidate that won at the op."""
    (difference,) = product().explain(0, limit=0).differences
    assert difference.dimension == 1
    assert [(chain.axis, chain.origin.annotation) for chain in difference.gone] == [('"a"', "function argument %arg1")]
    (stopped,) = difference.stopped
    assert stopped.code == "lost"
    assert stopped.obstacle is not None
    assert stopped.obstacle.origins == ("function argument %arg0",)


def test_proposals_are_tried_and_sorted_by_use() -> None:
    """Those that remove the reshard come first, each with the counts before and after."""
    trials = product().explain(0).trials
    assert trials[0].removes
    removes = [trial.removes for trial in trials]
    assert removes == sorted(removes, reverse=True)
    actual = {trial.text: trial for trial in trials}
    leave = actual['leave "a" off dimension 1 of the function argument %arg1']
    assert leave.removes
    assert leave.before == {"sdy.all_reduce": 1, "sdy.reshard": 1}
    assert leave.after == {"sdy.all_reduce": 1}
    assert (leave.total_before, leave.total_after, leave.values_changed) == (2, 1, 1)
    later = actual["give user priority 1 to dimension 1 of the function argument %arg1"]
    assert not later.removes


def test_an_all_reduce_names_the_axes_that_shard_what_is_reduced() -> None:
    """And leaving them off removes it."""
    why = product().explain(1)
    assert {chain.axis for chain in why.reduced} == {'"b"'}
    assert [trial.text for trial in why.trials if trial.removes] == [
        'leave "b" off dimension 0 of the function argument %arg1'
    ]


def test_a_priority_can_remove_a_reshard() -> None:
    """Two operands disagree: if one comes later, it follows the other."""
    single = explainer(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a", ?}]')}, %arg1: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = stablehlo.negate %arg1 : tensor<8xf32>
          %1 = sdy.sharding_constraint %0 <@mesh, [{{"b", ?}}]> : tensor<8xf32>
          %2 = stablehlo.add %1, %arg0 : tensor<8xf32>
          return %2 : tensor<8xf32>
        }}"""
    )
    assert single.lines()
    kinds = {
        trial.kind for number in range(len(single.lines())) for trial in single.explain(number).trials if trial.removes
    }
    assert {"constrain", "remove"} <= kinds


def test_a_closed_function_result_can_be_opened() -> None:
    """The reshard in front of the return goes away."""
    single = explainer(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}, {?}]')})
            -> (tensor<8x8xf32> {sharded("[{}, {}]")}) {{
          %0 = stablehlo.negate %arg0 : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}"""
    )
    (line,) = single.lines()
    assert line.where == "operand 0 of func.return"
    why = single.explain(0)
    assert [reason.code for reason in why.differences[0].stopped] == ["closed"]
    (trial,) = [trial for trial in why.trials if trial.text == "open dimension 0 of the function result 0"]
    assert trial.removes
    assert trial.total_after == 0


def test_a_number_that_does_not_exist_is_an_error() -> None:
    """The numbers there are are named."""
    with pytest.raises(OptionError, match="the numbers are 0 to 1"):
        product().explain(2)


def test_an_axis_that_two_factors_of_an_op_have_is_named_with_both() -> None:
    """The op sums over the part of the weights that it has; leaving the axis off the weights saves most."""
    single = explainer(
        f"""func.func @main(%arg0: tensor<32x64xf32> {sharded('[{"a"}, {}]')},
                            %arg1: tensor<64x128xf32> {sharded('[{"a"}, {}]')}) -> tensor<32x128xf32> {{
          %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
              : (tensor<32x64xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
          return %0 : tensor<32x128xf32>
        }}"""
    )
    why = single.explain([line.where for line in single.lines()].index("operand 0 of stablehlo.dot_general %0"))
    (lost, got) = why.differences
    assert [chain.origin.annotation for chain in lost.rivals] == ["function argument %arg1"]
    assert [chain.origin.annotation for chain in got.wanted] == ["function argument %arg1"]
    assert why.trials[0].removes
    assert why.trials[0].text == 'leave "a" off dimension 0 of the function argument %arg1'
    assert why.trials[0].total_after == 0


def test_a_communication_says_by_which_function_it_combines() -> None:
    """A maximum over a sharded dimension is an all-reduce by max; a sum needs no word."""
    actual = explainer(
        f"""func.func @main(%arg0: tensor<8x16xf32> {sharded('[{"a"}, {?}]')}) -> tensor<16xf32> {{
          %cst = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [0]
              : (tensor<8x16xf32>, tensor<f32>) -> tensor<16xf32>
          return %0 : tensor<16xf32>
        }}"""
    )
    (number,) = [item.number for item in actual.lines() if item.kind == "sdy.all_reduce"]
    why = actual.explain(number, limit=0)
    assert why.combiners == ("max",)
    assert '"a" shards what is reduced by max: %arg0 dim 0' in format_reshard(why)
    assert product().explain(1, limit=0).combiners == ("add",)
    assert "what is reduced: " in format_reshard(product().explain(1, limit=0))


def test_a_communication_names_tensors_as_the_user_does_and_the_place_of_its_op() -> None:
    """The name that JAX gives an argument, and file and line of the op that needs the move."""
    actual = explainer(
        f"""func.func @main(%arg0: tensor<8x16xf32> {sharded('[{"a"}, {?}]')} loc("w['up']"),
                            %arg1: tensor<16x4xf32> {sharded('[{"b"}, {"a"}]')} loc("x")) -> tensor<8x4xf32> {{
          %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
              : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("/home/user/model.py":12:3)
          return %0 : tensor<8x4xf32>
        }}"""
    )
    first = actual.lines()[0]
    assert (first.value, first.location) == ("x", "/home/user/model.py:12:3")
    assert str(first).endswith("operand 1 of stablehlo.dot_general %0 at model.py:12:3")
    (moved,) = actual.explain(0, limit=0).differences
    assert [chain.origin.annotation for chain in moved.gone] == ["function argument x"]


def test_what_a_call_returns_has_its_name() -> None:
    """A call is a named computation while shardings propagate; the call that it becomes again moves the same value."""
    lines = explainer(
        f"""func.func private @negate(%arg0: tensor<9x6xf32>) -> tensor<9x6xf32> {{
          %0 = stablehlo.negate %arg0 : tensor<9x6xf32>
          return %0 : tensor<9x6xf32>
        }}
        func.func @main(%arg0: tensor<9x6xf32> {sharded('[{"a"}, {?}]')}) -> tensor<9x6xf32> {{
          %0 = func.call @negate(%arg0) : (tensor<9x6xf32>) -> tensor<9x6xf32>
          %1 = stablehlo.tanh %0 : tensor<9x6xf32>
          return %1 : tensor<9x6xf32>
        }}"""
    ).lines()
    assert [(line.value, line.where) for line in lines] == [
        ("%0", "result of func.call edge %0"),
        ("%1", "operand 0 of func.return"),
        ("@negate:%arg0", "result of func.call edge @negate:%arg0"),
        ("@negate:%0", "operand 0 of func.return"),
    ]


def test_a_value_behind_a_long_chain_of_reshards_is_explained() -> None:
    """The result of a hundred constraints is that of a hundred reshards in the text of the result."""
    type_, dims = "tensor<8x8xf32>", ('{"x"}, {}', '{}, {"x"}')
    lines = [
        f"%{i} = sdy.sharding_constraint %{i - 1 if i else 'a'} <@mesh, [{dims[(i + 1) % 2]}]> : {type_}"
        for i in range(100)
    ]
    text = (
        'sdy.mesh @mesh = <["x"=2]>\n'
        f'func.func @main(%a: {type_} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {type_} {{\n'
        + "\n".join(lines)
        + f"\nreturn %99 : {type_}\n}}\n"
    )
    result = sdy.propagate(text, trace=True)
    returned = list(result.main.regions[0].blocks[0].ops)[-1].operands[0]
    assert result.explain(returned).dimensions[0].present[0].axis == '"x"'
