"""Laws of projection and of single steps, on random meshes, rules and shardings."""

from __future__ import annotations

from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from shardy_py.propagation.sharding_table import ShardingTable
from shardy_py.propagation.step_outcomes import StepOutcomes, rule_class
from shardy_py.propagation.steps.factors import Direction, Strategy
from shardy_py.sharding.axis_lists import is_strict_prefix
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.projection import project, unproject
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.testing.strategies import meshes, op_sharding_rules, tensor_shardings

DIRECTIONS = (Direction.NONE, Direction.FORWARD, Direction.BACKWARD, Direction.BOTH)


@st.composite
def steps(draw: st.DrawFn) -> tuple[Mesh, OpShardingRule, tuple[TensorSharding | None, ...]]:
    """Draw a mesh, a rule, and a sharding or none for each of its tensors."""
    mesh = evolve(draw(meshes()), device_ids=())
    rule = draw(op_sharding_rules(max_factors=6))
    shardings = []
    for mapping in (*rule.operand_mappings, *rule.result_mappings):
        sharding = draw(st.none() | tensor_shardings(mesh, rank=len(mapping)))
        if sharding is not None:
            sharding = evolve(sharding, mesh="mesh").map_dims(lambda dim: evolve(dim, priority=None))
        shardings.append(sharding)
    return mesh, rule, tuple(shardings)


@given(steps())
def test_going_to_factors_and_back_changes_nothing(
    step: tuple[Mesh, OpShardingRule, tuple[TensorSharding | None, ...]],
) -> None:
    """A tensor sharding projected to factors and back is the same, whatever the rule."""
    mesh, rule, shardings = step
    for sharding, mapping in zip(shardings, (*rule.operand_mappings, *rule.result_mappings), strict=True):
        if sharding is None or len({factor for dim in mapping for factor in dim}) < sum(map(len, mapping)):
            continue
        factors = project(sharding, mapping, rule.factor_sizes, mesh)
        assert unproject(factors, mapping, rule.factor_sizes, "mesh", mesh) == sharding


@given(steps(), st.data())
def test_a_step_only_adds_axes(
    step: tuple[Mesh, OpShardingRule, tuple[TensorSharding | None, ...]], data: st.DataObject
) -> None:
    """Whatever the strategy and the directions, the axes a dimension has stay the start of those it gets."""
    mesh, rule, shardings = step
    table = ShardingTable({"mesh": mesh})
    outcomes = StepOutcomes(table)
    directions = tuple(data.draw(st.sampled_from(DIRECTIONS)) for _ in rule.factor_sizes)
    strategy = data.draw(st.sampled_from(Strategy))
    is_elementwise = data.draw(st.booleans())
    ids = tuple(table.intern(sharding) for sharding in shardings)
    rule_id = outcomes.intern_rule(rule)
    outcome = outcomes.outcome(rule_id, directions, strategy, ids, is_elementwise=is_elementwise)
    for position, new_id in outcome:
        new, old = table.values[new_id], shardings[position]
        assert new is not None
        assert new != old
        if old is None:
            continue
        for before, after in zip(old.dim_shardings, new.dim_shardings, strict=True):
            assert before.axes == after.axes or is_strict_prefix(before.axes, after.axes)
            assert before.is_closed == after.is_closed
            assert before.axes == after.axes or not before.is_closed
        assert new.replicated_axes == old.replicated_axes
        assert new.unreduced_axes == old.unreduced_axes


@given(steps())
def test_without_a_direction_nothing_happens(
    step: tuple[Mesh, OpShardingRule, tuple[TensorSharding | None, ...]],
) -> None:
    """No direction along any factor means no change by either strategy."""
    mesh, rule, shardings = step
    table = ShardingTable({"mesh": mesh})
    outcomes = StepOutcomes(table)
    ids = tuple(table.intern(sharding) for sharding in shardings)
    none = (Direction.NONE,) * rule.num_factors
    for strategy in Strategy:
        assert outcomes.outcome(outcomes.intern_rule(rule), none, strategy, ids) == ()


@given(steps(), st.sampled_from([Direction.FORWARD, Direction.BACKWARD]))
def test_one_direction_brings_no_axes_from_the_other_side(
    step: tuple[Mesh, OpShardingRule, tuple[TensorSharding | None, ...]], direction: Direction
) -> None:
    """Where only the side shardings do not come from has axes, nothing changes."""
    mesh, rule, shardings = step
    split = len(rule.operand_mappings)
    is_source = [(index < split) == (direction is Direction.FORWARD) for index in range(len(shardings))]
    bare = tuple(None if source else sharding for source, sharding in zip(is_source, shardings, strict=True))
    table = ShardingTable({"mesh": mesh})
    outcomes = StepOutcomes(table)
    ids = tuple(table.intern(sharding) for sharding in bare)
    directions = (direction,) * rule.num_factors
    assert outcomes.outcome(outcomes.intern_rule(rule), directions, Strategy.BASIC, ids) == ()


@given(steps(), st.data())
def test_rules_of_one_class_behave_alike(
    step: tuple[Mesh, OpShardingRule, tuple[TensorSharding | None, ...]], data: st.DataObject
) -> None:
    """A step does the same by every rule of a class, whatever the sizes in which the rules differ."""
    mesh, rule, shardings = step
    sizes = tuple(data.draw(st.sampled_from([1, size, 2 * size, 3 * size])) for size in rule.factor_sizes)
    other = evolve(rule, factor_sizes=sizes)
    assume(rule_class(rule) == rule_class(other))
    directions = tuple(int(data.draw(st.sampled_from(DIRECTIONS))) for _ in rule.factor_sizes)
    is_elementwise = data.draw(st.booleans())
    for strategy in Strategy:
        computed = []
        for item in (rule, other):
            outcomes = StepOutcomes(ShardingTable({"mesh": mesh}))
            ids = tuple(outcomes.table.intern(sharding) for sharding in shardings)
            rule_id = outcomes.intern_rule(item)
            outcome = outcomes.outcome(rule_id, directions, strategy, ids, is_elementwise=is_elementwise)
            computed.append([(position, outcomes.table.values[new]) for position, new in outcome])
        assert computed[0] == computed[1]
