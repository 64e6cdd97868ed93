"""Outcomes of steps, kept by rule class, directions, strategy and shardings, and shared by the runs of a process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from shardy_py.propagation import step_outcomes
from shardy_py.propagation.sharding_table import ShardingTable
from shardy_py.propagation.step_outcomes import BLOCKED, NOTHING, OutcomeMemory, StepOutcomes, factor_kinds, rule_class
from shardy_py.propagation.steps.factors import Direction, Strategy
from shardy_py.schedule.builtin import FACTOR_KINDS
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_op_sharding_rule, parse_tensor_sharding
from shardy_py.sharding.rule import FactorKind, OpShardingRule

MESH = Mesh.of(a=2, b=2)
BOTH = (3, 3)


def outcomes() -> StepOutcomes:
    """Return outcomes without any."""
    return StepOutcomes(ShardingTable({"mesh": MESH, "one": Mesh((), (0,))}))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("<([i, j])->([j, i]) {i=2, j=4}>", "<([i, j])->([j, i]) {i=16, j=3}>", True),
        ("<([i])->([i, j]) {i=2, j=4}>", "<([i])->([i, j]) {i=8, j=5}>", True),
        ("<([i])->([i, j]) {i=2, j=4}>", "<([i])->([i, j]) {i=8, j=1}>", False),
        ("<([i, j])->([ij]) {i=2, j=4}>", "<([i, j])->([ij]) {i=4, j=4}>", False),
        ("<([i])->([i]) {i=2}>", "<([i])->([i]) {i=2} reduction={i}>", False),
        ("<([i])->([i]) {i=2}>", "<([i])->([i]) {i=2} blocked_propagation={i}>", False),
    ],
)
def test_sizes_matter_where_factors_share_axes(left: str, right: str, same: bool) -> None:
    """Rules differ by the sizes in a dimension of several factors, by which tensor is larger, and by factor kinds."""
    assert (rule_class(parse_op_sharding_rule(left)) == rule_class(parse_op_sharding_rule(right))) is same


def test_a_class_has_one_id() -> None:
    """A rule of a known class gets its id, an equal rule too, and the first rule stands for the class."""
    actual, first = outcomes(), parse_op_sharding_rule("<([i])->([i]) {i=2}>")
    ids = [actual.intern_rule(parse_op_sharding_rule(f"<([i])->([i]) {{i={size}}}>")) for size in (2, 4, 4)]
    assert ids == [actual.intern_rule(first)] * 3
    assert actual.rules == [first]
    assert actual.intern_rule(parse_op_sharding_rule("<([i])->([]) {i=2} reduction={i}>")) == 1


def test_blocked_factors_have_no_kind() -> None:
    """The kind of a factor is an index into the kinds that a schedule knows; a blocked one has none of them."""
    text = "<([i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=2, k=2, l=2, m=2} reduction={j} need_replication={k} "
    rule = parse_op_sharding_rule(text + "permutation={l} blocked_propagation={m}>")
    kinds = factor_kinds(rule)
    assert [FACTOR_KINDS[kind] for kind in kinds[:4]] == [
        FactorKind.PASS_THROUGH,
        FactorKind.REDUCTION,
        FactorKind.NEED_REPLICATION,
        FactorKind.PERMUTATION,
    ]
    assert kinds[4] == BLOCKED


def test_an_outcome_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same step with the same shardings is looked up; another direction is another key."""
    actual, computed = outcomes(), []
    compute = StepOutcomes.compute

    def count(self: StepOutcomes, *args: object) -> object:
        computed.append(args)
        return compute(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(StepOutcomes, "compute", count)
    rule = actual.intern_rule(parse_op_sharding_rule("<([i, j])->([i, j]) {i=4, j=4}>"))
    sharded = actual.table.intern(parse_tensor_sharding('<@mesh, [{"a", ?}, {?}]>'))
    results = [actual.outcome(rule, BOTH, Strategy.AGGRESSIVE, (sharded, 0)) for _ in range(3)]
    assert results == [((1, sharded),)] * 3
    assert len(computed) == 1
    assert actual.outcome(rule, (0, 0), Strategy.AGGRESSIVE, (sharded, 0)) == ()
    assert actual.outcome(rule, BOTH, Strategy.BASIC, (sharded, 0)) == ((1, sharded),)
    assert len(computed) == 3


def test_nothing_propagates_without_axes_or_over_a_maximal_mesh() -> None:
    """Open shardings, missing ones and placements on one device change no tensor."""
    actual = outcomes()
    rule = actual.intern_rule(parse_op_sharding_rule("<([i])->([i]) {i=4}>"))
    texts = ("<@mesh, [{}]>", "<@mesh, [{?}]>", "<@one, []>")
    ids = [actual.table.intern(parse_tensor_sharding(text)) for text in texts]
    for strategy in Strategy:
        assert [actual.outcome(rule, (3,), strategy, (id_, 0)) for id_ in (0, *ids)] == [()] * 4
    assert NOTHING[(1, 2, 3)] == ()


def test_axes_that_would_need_a_strided_view_are_no_change() -> None:
    """The minor factor of a dimension takes no axis while the major one is not fully sharded."""
    actual = outcomes()
    rule = actual.intern_rule(parse_op_sharding_rule("<([i, j])->([ij]) {i=4, j=4}>"))
    minor = actual.table.intern(parse_tensor_sharding('<@mesh, [{?}, {"a", ?}]>'))
    assert actual.outcome(rule, BOTH, Strategy.AGGRESSIVE, (minor, 0)) == ()


SHARDING = parse_tensor_sharding('<@mesh, [{"a", ?}]>')


def _rule(size: int = 4) -> OpShardingRule:
    return parse_op_sharding_rule(f"<([i])->([i]) {{i={size}}}>")


def test_programs_with_the_same_meshes_share_outcomes() -> None:
    """Names, axes and sizes of the meshes decide, not the mapping itself."""
    memory = OutcomeMemory()
    actual = memory.of({"mesh": MESH})
    assert memory.of({"mesh": Mesh.of(a=2, b=2)}) is actual
    for meshes in ({"other": MESH}, {"mesh": Mesh.of(a=2, b=4)}, {"mesh": MESH, "second": MESH}, {}):
        assert memory.of(meshes) is not actual


def test_later_meshes_of_a_program_do_not_change_the_outcomes_of_others() -> None:
    """The mapping is copied, so that a pass may add a mesh to its program."""
    meshes = {"mesh": MESH}
    actual = OutcomeMemory().of(meshes)
    meshes["late"] = Mesh.of(c=3)
    assert "late" not in actual.table.meshes


def test_the_meshes_not_asked_for_longest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of meshes has a limit."""
    monkeypatch.setattr(step_outcomes, "MANY_MESHES", 2)
    memory = OutcomeMemory()
    first, second = (memory.of({name: MESH}) for name in "xy")
    assert memory.of({"x": MESH}) is first
    memory.of({"z": MESH})
    assert memory.of({"x": MESH}) is first
    assert memory.of({"y": MESH}) is not second


def test_outcomes_of_many_kinds_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of outcomes has a limit; a run that has them keeps them."""
    memory = OutcomeMemory()
    actual = memory.of({"mesh": MESH})
    monkeypatch.setattr(step_outcomes, "MANY_OUTCOMES", actual.size + 1)
    actual.intern_rule(_rule())
    assert memory.of({"mesh": MESH}) is actual
    actual.table.intern(SHARDING)
    assert memory.of({"mesh": MESH}) is not actual


def test_threads_agree_on_all_ids() -> None:
    """Rules and shardings that several threads meet at the same time have one id each, and outcomes are the same."""
    texts = [f'<@mesh, [{{"{axis}"{end}}}]>' for axis in "ab" for end in (", ?", "")]
    actual = OutcomeMemory().of({"mesh": MESH})
    both = (int(Direction.BOTH),)

    def work(_: int) -> list[object]:
        ids = [actual.table.intern(parse_tensor_sharding(text)) for text in texts for _ in range(50)]
        rules = [actual.intern_rule(_rule(size)) for size in range(1, 50)]
        outcomes = [actual.outcome(rules[0], both, Strategy.AGGRESSIVE, (number, 0)) for number in ids]
        return [ids, rules, outcomes]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(16)))
    assert all(result == results[0] for result in results)
    assert len(actual.table.values) == len(actual.table.has_axes)
    assert len(actual.rules) == len(actual.kinds) == 1
