"""What explanations say of the situations people ask about."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py import Result
from shardy_py.schedule.model import Entry, Level, Schedule, Selector
from shardy_py.sharding.rule import FactorKind
from tests.unit.explain.explained import losers, sharded, traced, way, why_not


def dot(left: str, right: str, *, rows: int = 8) -> Result:
    """Return the product of two matrices whose rows and columns may both want an axis."""
    return traced(
        f"""func.func @main(%arg0: tensor<{rows}x8xf32> {sharded(left)}, %arg1: tensor<8x8xf32> {sharded(right)})
            -> tensor<{rows}x8xf32> {{
          %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
              : (tensor<{rows}x8xf32>, tensor<8x8xf32>) -> tensor<{rows}x8xf32>
          return %0 : tensor<{rows}x8xf32>
        }}"""
    )


@pytest.mark.parametrize(("rows", "winner"), [(16, 0), (4, 1)])
def test_of_two_operands_that_want_an_axis_the_larger_one_wins(rows: int, winner: int) -> None:
    """The other one is named as the one that lost, with both sizes."""
    result = dot('[{"a"}, {?}]', '[{?}, {"a"}]', rows=rows)
    assert way(result, "%0", winner, '"a"') == [f"%0 dim {winner}", f"function argument %arg{winner}"]
    loser = 1 - winner
    reason, lost = why_not(result, "%0", loser, '"a"')
    assert (reason.code, lost.code) == ("overlap", "lost")
    assert lost.candidate is not None
    assert lost.obstacle is not None
    assert (lost.candidate.value, lost.candidate.dimension) == (f"%arg{loser}", loser)
    assert lost.candidate.origins == (f"function argument %arg{loser}",)
    assert (lost.obstacle.value, lost.obstacle.dimension) == ("%0", winner)
    assert lost.obstacle.origins == (f"function argument %arg{winner}",)
    assert lost.detail == f"larger tensor: {max(rows, 8) * 8} elements, not {min(rows, 8) * 8}"


def test_of_two_equally_large_operands_the_earlier_one_wins() -> None:
    """The reason says that the sizes are equal."""
    lost = why_not(dot('[{"a"}, {?}]', '[{?}, {"a"}]'), "%0", 1, '"a"')[-1]
    assert (lost.code, lost.detail) == ("lost", "equally large tensors: the earlier one")


def test_a_user_priority_decides_before_sizes_do() -> None:
    """What comes into play later loses, with both priorities named."""
    result = dot('[{"a"}p1, {?}]', '[{?}, {"a"}]', rows=16)
    assert way(result, "%0", 1, '"a"') == ["%0 dim 1", "function argument %arg1"]
    lost = why_not(result, "%0", 0, '"a"')[-1]
    assert (lost.code, lost.detail) == ("priority", "overlap; user priority 1 after 0")
    assert losers(result, "%0", 0, '"a"') == [("priority", "%arg0 dim 0")]


def embedding(table: str, indices: str) -> Result:
    """Return the rows of a table at some indices."""
    return traced(
        f"""func.func @main(%arg0: tensor<64x16xf32> {sharded(table)}, %arg1: tensor<8x1xi32> {sharded(indices)})
            -> tensor<8x16xf32> {{
          %0 = "stablehlo.gather"(%arg0, %arg1) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
              collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
              slice_sizes = array<i64: 1, 16>}}> : (tensor<64x16xf32>, tensor<8x1xi32>) -> tensor<8x16xf32>
          return %0 : tensor<8x16xf32>
        }}"""
    )


def test_the_table_of_an_embedding_wins_over_its_indices() -> None:
    """It is the larger tensor; the indices lose."""
    result = embedding('[{?}, {"a"}]', '[{"a"}, {?}]')
    assert way(result, "%0", 1, '"a"') == ["%0 dim 1", "function argument %arg0"]
    assert losers(result, "%0", 0, '"a"') == [("lost", "%arg1 dim 0")]
    assert why_not(result, "%0", 0, '"a"')[-1].detail == "larger tensor: 1024 elements, not 8"


def test_with_a_priority_the_indices_of_an_embedding_win() -> None:
    """The table's columns come later and are named as what lost."""
    result = embedding('[{?}, {"a"}p1]', '[{"a"}, {?}]')
    assert way(result, "%0", 0, '"a"') == ["%0 dim 0", "function argument %arg1"]
    assert losers(result, "%0", 1, '"a"') == [("priority", "%arg0 dim 1")]


def reshape(rows: int, columns: int, sharding: str) -> Result:
    """Return a vector reshaped to a matrix."""
    size = rows * columns
    return traced(
        f"""func.func @main(%arg0: tensor<{size}xf32> {sharded(sharding)}) -> tensor<{rows}x{columns}xf32> {{
          %0 = stablehlo.reshape %arg0 : (tensor<{size}xf32>) -> tensor<{rows}x{columns}xf32>
          return %0 : tensor<{rows}x{columns}xf32>
        }}"""
    )


def test_a_reshape_that_splits_a_dimension_splits_its_axis() -> None:
    """Each part has a chain of its own, and is where the other part cannot be."""
    result = reshape(2, 4, '[{"b"}]')
    assert way(result, "%0", 0, '"b":(1)2') == ["%0 dim 0", "function argument %arg0"]
    assert way(result, "%0", 1, '"b":(2)2') == ["%0 dim 1", "function argument %arg0"]
    (reason,) = why_not(result, "%0", 0, '"b":(2)2')
    assert reason.code == "overlap"
    assert reason.obstacle is not None
    assert reason.obstacle.axes == ('"b":(2)2',)


def test_an_axis_that_divides_no_factor_of_a_reshape_stays_behind() -> None:
    """Four devices cannot share three rows; the candidate and the factor are named."""
    result = reshape(3, 4, '[{"b"}]')
    assert losers(result, "%0", 1, '"b"') == [("does-not-divide", "%arg0 dim 0")]
    assert "factor i has size 3" in why_not(result, "%0", 1, '"b"')[0].text


def test_each_use_of_a_scalar_constant_is_explained_by_its_user() -> None:
    """The copies are named after their users, and each has the sharding of its own."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}, {?}]')},
                            %arg1: tensor<8x8xf32> {sharded('[{?}, {"a"}]')}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
          %c = stablehlo.constant dense<1.0> : tensor<f32>
          %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
          %1 = stablehlo.add %arg0, %0 : tensor<8x8xf32>
          %2 = stablehlo.add %arg1, %0 : tensor<8x8xf32>
          return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
        }}"""
    )
    assert way(result, "%0 for %1", 0, '"a"') == ["%0 for %1 dim 0", "function argument %arg0"]
    assert way(result, "%0 for %2", 1, '"a"') == ["%0 for %2 dim 1", "function argument %arg1"]
    assert why_not(result, "%0 for %2", 0, '"a"')[0].code == "overlap"


def add(size: int, argument: str, result: str = "", *, mesh: str = 'sdy.mesh @mesh = <["a"=8]>\n') -> Result:
    """Return a sum with itself."""
    return traced(
        f"""func.func @main(%arg0: tensor<{size}x8xf32> {argument}) -> (tensor<{size}x8xf32> {result}) {{
          %0 = stablehlo.add %arg0, %arg0 : tensor<{size}x8xf32>
          return %0 : tensor<{size}x8xf32>
        }}""",
        mesh=mesh,
    )


def test_inputs_and_outputs_of_17_rows_lose_an_axis_of_8() -> None:
    """What is inside keeps it, padded; the boundary names the size."""
    result = add(17, sharded('[{"a"}, {?}]'))
    assert way(result, "%0", 0, '"a"') == ["%0 dim 0", "function argument %arg0"]
    for boundary in ("%arg0", "result0"):
        (gone,) = why_not(result, boundary, 0, '"a"')
        assert gone.code == "boundary"
        assert "size 17" in gone.text


def test_a_closed_function_result_keeps_axes_out() -> None:
    """What is returned keeps its axis and is named as the candidate."""
    result = add(16, sharded('[{"a"}, {?}]'), sharded("[{}, {}]"))
    reason, refused = why_not(result, "result0", 0, '"a"')
    assert (reason.code, refused.code) == ("closed", "closed")
    assert "function result 0" in reason.text
    assert losers(result, "result0", 0, '"a"') == [("closed", "%0 dim 0")]


def loop(**options: str) -> Result:
    """Return a loop that multiplies by a matrix with sharded rows, from a constant that may not be sharded."""
    return traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}, {?}]')}, %arg1: tensor<i32>) -> tensor<8xf32> {{
          %c = stablehlo.constant dense<0> : tensor<i32>
          %cst = stablehlo.constant {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}]>]>}} dense<0.0>
              : tensor<8xf32>
          %0:2 = stablehlo.while(%i = %c, %x = %cst) : tensor<i32>, tensor<8xf32>
            cond {{
              %1 = stablehlo.compare LT, %i, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
              stablehlo.return %1 : tensor<i1>
            }} do {{
              %2 = stablehlo.dot_general %arg0, %x, contracting_dims = [1] x [0]
                  : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8xf32>
              stablehlo.return %i, %2 : tensor<i32>, tensor<8xf32>
            }}
          return %0#1 : tensor<8xf32>
        }}""",
        **options,
    )


def test_a_carried_value_loses_its_sharding_to_an_unsharded_start() -> None:
    """All that flows into the loop has to agree with the basic strategy: the yielded value loses to the constant."""
    result = loop(strategy="basic")
    (refused,) = why_not(result, "%0#1", 0, '"a"')
    assert refused.code == "closed"
    assert refused.op == "stablehlo.while edge %0#1"
    assert refused.candidate is not None
    assert refused.obstacle is not None
    assert (refused.candidate.value, refused.candidate.origins) == ("%1~2", ("function argument %arg0",))
    assert refused.obstacle.value == "%cst for %0"


def test_a_carried_value_keeps_its_sharding_where_conflicts_are_resolved() -> None:
    """The aggressive strategy shards the loop, and only the constant stays as it is."""
    result = loop()
    assert way(result, "%0#1", 0, '"a"') == ["%0#1 dim 0", "%1~2 dim 0", "function argument %arg0"]
    assert ("closed", "%0#1 dim 0") in losers(result, "%cst", 0, '"a"')


def two_operands(left: str, right: str) -> Result:
    """Return the sum of two matrices."""
    return traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded(left)}, %arg1: tensor<8x8xf32> {sharded(right)})
            -> tensor<8x8xf32> {{
          %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}"""
    )


@pytest.mark.parametrize("kind", ["replicated", "unreduced"])
def test_replicated_and_unreduced_axes_do_not_shard_a_dimension(kind: str) -> None:
    """The annotation and the candidates are named."""
    result = two_operands('[{"a"}, {?}]', f'[{{?}}, {{?}}], {kind}={{"a"}}')
    reason = why_not(result, "%arg1", 0, '"a"')[0]
    assert reason.code == kind
    assert "function argument %arg1" in reason.text
    assert losers(result, "%arg1", 0, '"a"') == [(kind, "%arg0 dim 0"), (kind, "%0 dim 0")]


def test_a_conflict_names_the_tensor_in_the_way() -> None:
    """Neither of two axes gets on; each has the other operand in its way."""
    result = two_operands('[{"a"}, {?}]', '[{"b"}, {?}]')
    for axis, loser, winner in (('"a"', "%arg0", "%arg1"), ('"b"', "%arg1", "%arg0")):
        (reason,) = why_not(result, "%0", 0, axis)
        assert reason.candidate is not None
        assert reason.obstacle is not None
        assert (reason.code, reason.candidate.value, reason.obstacle.value) == ("conflict", loser, winner)


def ruled(mark: str, **options: object) -> Result:
    """Return an op with a rule of its own."""
    return traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}, {"b"}]')}) -> tensor<8x8xf32> {{
          %0 = stablehlo.custom_call @foo(%arg0) {{sdy.sharding_rule =
              #sdy.op_sharding_rule<([i, j])->([i, j]) {{i=8, j=8}} {mark}={{j}}, custom>}}
              : (tensor<8x8xf32>) -> tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}""",
        **options,
    )


def test_a_blocked_factor_is_named() -> None:
    """Whatever the schedule."""
    assert losers(ruled("blocked_propagation"), "%0", 1, '"b"') == [("blocked", "%arg0 dim 1")]


@pytest.mark.parametrize("kind", ["need_replication", "permutation"])
def test_a_factor_that_costs_communication_is_kept_back_by_a_schedule(kind: str) -> None:
    """Where no level lets it through, the reason is its kind."""
    only = Level("pass-through", (Entry(Selector(factor_kinds=(FactorKind.PASS_THROUGH,))),))
    result = ruled(kind, schedule=Schedule((only,)))
    assert losers(result, "%0", 1, '"b"') == [("factor-kind", "%arg0 dim 1")]
    assert f"a {kind} factor" in why_not(result, "%0", 1, '"b"')[0].text


def test_what_waits_for_a_level_says_so() -> None:
    """A candidate that lost to one that was allowed earlier was kept back by the direction before."""
    lost = why_not(dot('[{"a"}, {?}]', '[{?}, {"a"}]'), "%0", 1, '"a"')[-1]
    assert lost.earlier == ("direction at level 0", "direction at level 1")


def backward(op: str, **options: str) -> Result:
    """Return an op whose result is sharded."""
    return traced(
        f"""func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sharded('[{"a"}, {?}]')}) {{
          %0 = {op} : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}""",
        **options,
    )


def test_a_schedule_that_only_goes_forward_leaves_operands_alone() -> None:
    """The direction is the reason."""
    result = backward("stablehlo.negate %arg0", schedule="forward-only")
    assert losers(result, "%arg0", 0, '"a"') == [("direction", "%0 dim 0")]


def test_a_propagation_barrier_is_named() -> None:
    """It lets shardings through in its direction only."""
    result = backward("sdy.propagation_barrier %arg0 allowed_direction=FORWARD")
    assert losers(result, "%arg0", 0, '"a"') == [("direction", "%0 dim 0")]
    assert "barrier lets shardings through only forward" in why_not(result, "%arg0", 0, '"a"')[0].text


def test_an_op_without_a_rule_is_named() -> None:
    """With the tensor on its other side."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}, {?}]')}) -> tensor<8x8xf32> {{
          %0 = stablehlo.custom_call @foo(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }}"""
    )
    assert losers(result, "%0", 0, '"a"') == [("no-rule", "%arg0 dim 0")]
    assert "stablehlo.custom_call %0" in why_not(result, "%0", 0, '"a"')[0].text


def test_axes_go_through_an_optimization_barrier() -> None:
    """By its data-flow edge."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{"a"}, {?}]')}) -> tensor<8x8xf32> {{
          %0 = stablehlo.optimization_barrier %arg0 : tensor<8x8xf32>
          %1 = stablehlo.negate %0 : tensor<8x8xf32>
          return %1 : tensor<8x8xf32>
        }}"""
    )
    assert way(result, "%1", 0, '"a"') == ["%1 dim 0", "%0 dim 0", "function argument %arg0"]


def test_axes_go_into_and_out_of_a_manual_computation() -> None:
    """Free axes go through the body; manual ones come from the computation's own shardings."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8x8xf32> {sharded('[{?}, {"b"}]')}) -> tensor<8x8xf32> {{
          %0 = stablehlo.negate %arg0 : tensor<8x8xf32>
          %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{{"a", ?}}, {{?}}]>]
              out_shardings=[<@mesh, [{{"a", ?}}, {{?}}]>] manual_axes={{"a"}} (%arg1: tensor<4x8xf32>) {{
            %2 = stablehlo.negate %arg1 : tensor<4x8xf32>
            sdy.return %2 : tensor<4x8xf32>
          }} : (tensor<8x8xf32>) -> tensor<8x8xf32>
          return %1 : tensor<8x8xf32>
        }}"""
    )
    inner = ["%2 dim 1", "%arg1 dim 1", "%0 dim 1", "function argument %arg0"]
    assert way(result, "%1", 1, '"b"') == ["%1 dim 1", *inner]
    assert way(result, "%1", 0, '"a"') == ["out_shardings[0] of the manual computation %1"]
    assert way(result, "%0", 0, '"a"') == ["%0 dim 0", "in_shardings[0] of the manual computation %arg1"]


def test_axes_go_through_every_copy_of_a_function() -> None:
    """The second call has a copy of its own, named after the function's values."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
          return %1 : tensor<8xf32>
        }}
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }}"""
    )
    first = ["%0 dim 0", "@f:%0 dim 0", "@f:%arg0 dim 0", "function argument %arg0"]
    assert way(result, "%1", 0, '"a"') == ["%1 dim 0", "@f:%0~2 dim 0", "@f:%arg0~2 dim 0", *first]


def test_axes_go_through_sharding_groups() -> None:
    """A member takes what another one got, and what it gets goes on from there."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}, %arg1: tensor<8xf32>)
            -> (tensor<8xf32>, tensor<8xf32>) {{
          %0 = stablehlo.negate %arg1 : tensor<8xf32>
          %1 = stablehlo.negate %arg0 : tensor<8xf32>
          sdy.sharding_group %0 group_id=0 : tensor<8xf32>
          sdy.sharding_group %1 group_id=0 : tensor<8xf32>
          return %1, %0 : tensor<8xf32>, tensor<8xf32>
        }}"""
    )
    assert way(result, "%arg1", 0, '"a"') == ["%arg1 dim 0", "%0 dim 0", "%1 dim 0", "function argument %arg0"]
    (dimension,) = result.explain("%arg1", 0, names="input").dimensions
    assert [move.direction for move in dimension.present[0].moves] == ["backward", "group", "forward"]


def test_a_constraint_stops_what_comes_from_before_it() -> None:
    """Behind it there are its axes; what stopped is named with how far away that was."""
    result = traced(
        f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          %1 = sdy.sharding_constraint %0 <@mesh, [{{"b", ?}}]> : tensor<8xf32>
          %2 = stablehlo.negate %1 : tensor<8xf32>
          return %2 : tensor<8xf32>
        }}"""
    )
    assert way(result, "%2", 0, '"b"') == ["%2 dim 0", "sharding constraint %1"]
    (reason,) = why_not(result, "%2", 0, '"a"')
    assert (reason.code, reason.value, reason.distance) == ("conflict", "%1", 1)


def test_ops_over_several_meshes_pass_nothing_on() -> None:
    """The tensor over the other mesh is named."""
    result = traced(
        f"""sdy.mesh @other = <["a"=2, "c"=4]>
        func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')},
                        %arg1: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@other, [{{?}}]>}}) -> tensor<8xf32> {{
          %0 = stablehlo.add %arg0, %arg1 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }}"""
    )
    assert losers(result, "%arg1", 0, '"a"') == [("mesh", "%arg0 dim 0")]


def test_a_value_without_an_edge_of_its_own_names_the_one_it_has() -> None:
    """The argument of a loop's body has the sharding of the loop's result."""
    result = loop(strategy="basic")
    owner, refused = why_not(result, "%iterArg_0", 0, '"a"')
    assert (owner.code, refused.code) == ("edge-owner", "closed")
    assert "%0#1" in owner.text
    assert result.explain("%iterArg_0", names="input").carrier == "%0#1"


def test_what_an_op_cannot_compute_is_resharded_behind_it() -> None:
    """The axis is there after propagation, and the explanation says why the result's op has it not."""
    body = f"""func.func @main(%arg0: tensor<32x64xf32> {sharded('[{"a"}, {}]')},
                               %arg1: tensor<64x128xf32> {sharded('[{"a"}, {}]')}) -> tensor<32x128xf32> {{
      %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
          : (tensor<32x64xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
      return %0 : tensor<32x128xf32>
    }}"""
    result = traced(body, explicit_collectives=True)
    assert way(result, "%0", 0, '"a"') == ["%0 dim 0", "function argument %arg0"]
    assert [item.code for item in why_not(result, "%0", 0, '"a"')] == ["reshard"]


def test_a_conservative_run_names_what_it_kept_out() -> None:
    """No sub-axis is introduced."""
    module = f"""func.func @main(%arg0: tensor<8xf32> {sharded('[{"b"}]')}) -> tensor<2x4xf32> {{
      %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }}"""
    assert losers(traced(module, conservative=True), "%0", 0, '"b"') == [("conservative", "%arg0 dim 0")]


def test_chains_may_be_long() -> None:
    """Longer than what Python can nest."""
    lines = [f"%{index + 1} = stablehlo.negate %{index} : tensor<8xf32>" for index in range(1500)]
    result = traced(
        f"""func.func @main(%0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          {chr(10).join(lines)}
          return %1500 : tensor<8xf32>
        }}"""
    )
    assert len(way(result, "result0", 0, '"a"')) == 1502
