"""Outcomes of steps, kept by rule class, directions, strategy and shardings."""

from __future__ import annotations

import pytest

from shardy_py.propagation.sharding_table import ShardingTable
from shardy_py.propagation.step_outcomes import BLOCKED, NOTHING, StepOutcomes, factor_kinds, rule_class
from shardy_py.propagation.steps.factors import Strategy
from shardy_py.schedule.default import FACTOR_KINDS
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_op_sharding_rule, parse_tensor_sharding
from shardy_py.sharding.rule import FactorKind

MESH = Mesh.of(a=2, b=2)
BOTH = (3, 3)


def outcomes() -> StepOutcomes:
    """Return outcomes without any."""
    return StepOutcomes(ShardingTable({"mesh": MESH, "one": Mesh((), (0,))}))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("<([i, j])->([j, i]) {i=2, j=4}>", "<([i, j])->([j, i]) {i=16, j=3}>", True),
        ("<([i])->([i, j]) {i=2, j=4}>", "<([i])->([i, j]) {i=8, j=5}>", True),
        ("<([i])->([i, j]) {i=2, j=4}>", "<([i])->([i, j]) {i=8, j=1}>", False),
        ("<([i, j])->([ij]) {i=2, j=4}>", "<([i, j])->([ij]) {i=4, j=4}>", False),
        ("<([i])->([i]) {i=2}>", "<([i])->([i]) {i=2} reduction={i}>", False),
        ("<([i])->([i]) {i=2}>", "<([i])->([i]) {i=2} blocked_propagation={i}>", False),
    ],
)
def test_sizes_matter_where_factors_share_axes(one: str, other: str, same: bool) -> None:
    """Rules differ by the sizes in a dimension of several factors, by which tensor is larger, and by factor kinds."""
    assert (rule_class(parse_op_sharding_rule(one)) == rule_class(parse_op_sharding_rule(other))) is same


def test_a_class_has_one_id() -> None:
    """A rule of a known class gets its id, an equal rule too, and the first rule stands for the class."""
    found, first = outcomes(), parse_op_sharding_rule("<([i])->([i]) {i=2}>")
    ids = [found.intern_rule(parse_op_sharding_rule(f"<([i])->([i]) {{i={size}}}>")) for size in (2, 4, 4)]
    assert ids == [found.intern_rule(first)] * 3
    assert found.rules == [first]
    assert found.intern_rule(parse_op_sharding_rule("<([i])->([]) {i=2} reduction={i}>")) == 1


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
    found, computed = outcomes(), []
    compute = StepOutcomes.compute

    def count(self: StepOutcomes, *args: object) -> object:
        computed.append(args)
        return compute(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(StepOutcomes, "compute", count)
    rule = found.intern_rule(parse_op_sharding_rule("<([i, j])->([i, j]) {i=4, j=4}>"))
    sharded = found.table.intern(parse_tensor_sharding('<@mesh, [{"a", ?}, {?}]>'))
    results = [found.outcome(rule, BOTH, Strategy.AGGRESSIVE, (sharded, 0)) for _ in range(3)]
    assert results == [((1, sharded),)] * 3
    assert len(computed) == 1
    assert found.outcome(rule, (0, 0), Strategy.AGGRESSIVE, (sharded, 0)) == ()
    assert found.outcome(rule, BOTH, Strategy.BASIC, (sharded, 0)) == ((1, sharded),)
    assert len(computed) == 3


def test_nothing_propagates_without_axes_or_over_a_maximal_mesh() -> None:
    """Open shardings, missing ones and placements on one device change no tensor."""
    found = outcomes()
    rule = found.intern_rule(parse_op_sharding_rule("<([i])->([i]) {i=4}>"))
    texts = ("<@mesh, [{}]>", "<@mesh, [{?}]>", "<@one, []>")
    ids = [found.table.intern(parse_tensor_sharding(text)) for text in texts]
    for strategy in Strategy:
        assert [found.outcome(rule, (3,), strategy, (id_, 0)) for id_ in (0, *ids)] == [()] * 4
    assert NOTHING[(1, 2, 3)] == ()


def test_axes_that_would_need_a_strided_view_are_no_change() -> None:
    """The minor factor of a dimension takes no axis while the major one is not fully sharded."""
    found = outcomes()
    rule = found.intern_rule(parse_op_sharding_rule("<([i, j])->([ij]) {i=4, j=4}>"))
    minor = found.table.intern(parse_tensor_sharding('<@mesh, [{?}, {"a", ?}]>'))
    assert found.outcome(rule, BOTH, Strategy.AGGRESSIVE, (minor, 0)) == ()
