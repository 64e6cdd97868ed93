"""Laws of explanations: of single steps, on random meshes, rules and shardings, and of whole programs."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.propagation.step_outcomes import ShardingTable, StepOutcomes
from shardy_py.propagation.steps.factors import Direction, Strategy
from shardy_py.sharding.axis_lists import axis_set_difference
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.trace.reasons import Reason
from shardy_py.trace.step import StepExplanation, explain_step
from tests.properties.test_propagation_properties import DIRECTIONS, steps

Step = tuple[Mesh, OpShardingRule, tuple[TensorSharding | None, ...]]


@st.composite
def visits(draw: st.DrawFn) -> tuple[Step, StepExplanation | None, tuple[TensorSharding | None, ...]]:
    """Draw a visit and return what it is about, its explanation, and what the engine makes of it."""
    mesh, rule, shardings = step = draw(steps())
    table = ShardingTable({"mesh": mesh})
    outcomes = StepOutcomes(table)
    both = (Direction.BOTH,) * rule.num_factors
    directions = draw(st.just(both) | st.tuples(*[st.sampled_from(DIRECTIONS) for _ in rule.factor_sizes]))
    directions = tuple(
        0 if factor in rule.blocked_propagation_factors else int(direction)
        for factor, direction in enumerate(directions)
    )
    strategy = draw(st.sampled_from(Strategy))
    flags = {"is_elementwise": draw(st.booleans()), "conservative": draw(st.booleans())}
    ids = tuple(table.intern(sharding) for sharding in shardings)
    after = list(shardings)
    for position, new in outcomes.outcome(outcomes.intern_rule(rule), directions, strategy, ids, **flags):
        after[position] = table.values[new]
    common = table.common_mesh(ids)
    if common is None or common[1].is_maximal:
        return step, None, tuple(after)
    return step, explain_step(rule, shardings, common, directions, strategy, **flags), tuple(after)


@given(visits())
def test_an_explanation_comes_to_the_same_result_as_the_engine(
    visit: tuple[Step, StepExplanation | None, tuple[TensorSharding | None, ...]],
) -> None:
    """Whatever the strategy, the directions and the flags."""
    _, explanation, after = visit
    if explanation is not None:
        assert explanation.shardings == after


@given(visits())
def test_every_axis_that_another_tensor_has_is_accounted_for(
    visit: tuple[Step, StepExplanation | None, tuple[TensorSharding | None, ...]],
) -> None:
    """What a tensor has not along a factor, but another one has, it has got or was refused."""
    (mesh, _, _), explanation, _ = visit
    if explanation is None:
        return
    for target, tensor in enumerate(explanation.old.tensors):
        for factor, entry in tensor.factors.items():
            reported = [
                item.axis
                for item in (*explanation.accepted, *explanation.refused)
                if (item.target, item.factor) == (target, factor)
            ]
            for source, other in enumerate(explanation.old.tensors):
                if source == target or factor not in other.factors:
                    continue
                for axis in axis_set_difference(other.factors[factor].axes, entry.axes, mesh):
                    assert any(element.overlaps(axis) for element in reported)


@given(steps(), st.sampled_from(Strategy), st.booleans())
def test_what_a_reason_names_does_stand_in_the_way(step: Step, strategy: Strategy, is_elementwise: bool) -> None:
    """Opened, or without its replicated or unreduced axes, the tensor named refuses for that reason no more."""
    mesh, rule, shardings = step
    table = ShardingTable({"mesh": mesh})
    common = table.common_mesh([table.intern(sharding) for sharding in shardings])
    if common is None or common[1].is_maximal:
        return
    both = tuple(
        int(Direction.NONE if factor in rule.blocked_propagation_factors else Direction.BOTH)
        for factor in range(rule.num_factors)
    )
    for refusal in explain_step(rule, shardings, common, both, strategy, is_elementwise=is_elementwise).refused:
        if refusal.reason not in FREED or refusal.other is None:
            continue
        old = shardings[refusal.other]
        assert old is not None
        changed = list(shardings)
        changed[refusal.other] = FREED[refusal.reason](old)
        again = explain_step(rule, changed, common, both, strategy, is_elementwise=is_elementwise)
        actual = {(item.reason, item.other, item.target, item.factor) for item in again.refused}
        assert (refusal.reason, refusal.other, refusal.target, refusal.factor) not in actual


FREED = {
    Reason.CLOSED: lambda sharding: sharding.open_like(),
    Reason.REPLICATED: lambda sharding: evolve(sharding, replicated_axes=()),
    Reason.UNREDUCED: lambda sharding: evolve(sharding, unreduced_axes=()),
}
"""Reasons, and what takes away the thing they name."""
