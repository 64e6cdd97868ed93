"""The built-in schedules, and the directions of the default one at each level."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.errors import OptionError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.ops import Broadcast, Elementwise, ForwardPassThrough, PassThrough, Trait
from shardy_py.schedule.builtin import (
    BUILTIN,
    DEFAULT,
    FACTOR_KINDS,
    NAMED,
    builtin_schedule,
    kind_directions,
    matching_entries,
    vectors_of_levels,
)
from shardy_py.schedule.model import Direction, Entry, Level, Schedule, Selector
from shardy_py.sharding.rule import FactorKind


def test_an_unknown_name_lists_the_known_ones() -> None:
    """A misspelt built-in schedule is an error that names all."""
    with pytest.raises(OptionError, match="default, flat"):
        builtin_schedule("defualt")


@pytest.mark.parametrize("name", sorted(NAMED))
def test_in_the_end_every_factor_propagates(name: str) -> None:
    """Whatever comes first, the last level gives every kind of factor of any op a direction."""
    schedule = builtin_schedule(name)
    chosen = matching_entries(schedule, Op(Program(), "no.such_op"), frozenset())
    for multi_use in (False, True):
        assert all(kind_directions(schedule, chosen, len(schedule.levels) - 1, multi_use=multi_use).values())


def test_comparisons_begin_with_the_default() -> None:
    """The first of the built-in schedules is what the others are compared with."""
    assert next(iter(BUILTIN.values())) is DEFAULT
    assert BUILTIN.items() <= NAMED.items()


PASS, REDUCED = FactorKind.PASS_THROUGH, FactorKind.REDUCTION
NONE, FORWARD, BACKWARD, BOTH = Direction.NONE, Direction.FORWARD, Direction.BACKWARD, Direction.BOTH


def op_named(name: str) -> Op:
    """Return an op without anything."""
    return Op(Program(), name)


@pytest.mark.parametrize(
    ("traits", "multi_use", "kind", "expected"),
    [
        ([Elementwise], False, PASS, [BOTH, BOTH, BOTH, BOTH, BOTH]),
        ([PassThrough], True, PASS, [NONE, BOTH, BOTH, BOTH, BOTH]),
        ([ForwardPassThrough], False, PASS, [FORWARD, FORWARD, BOTH, BOTH, BOTH]),
        ([], False, PASS, [NONE, NONE, BOTH, BOTH, BOTH]),
        ([], False, REDUCED, [NONE, NONE, NONE, BOTH, BOTH]),
        ([Broadcast], False, PASS, [NONE, NONE, BACKWARD, BACKWARD, BOTH]),
        ([Broadcast], False, REDUCED, [NONE, NONE, NONE, BACKWARD, BOTH]),
    ],
)
def test_the_default_is_that_of_the_reference(
    traits: list[Trait], multi_use: bool, kind: FactorKind, expected: list[Direction]
) -> None:
    """Per level the direction of a factor of one kind, by the traits of the op and the uses of its operands."""
    entries = matching_entries(DEFAULT, op_named("toy.f"), frozenset(traits))
    actual = [kind_directions(DEFAULT, entries, level, multi_use=multi_use)[kind] for level in range(5)]
    assert actual == expected


@pytest.mark.parametrize("name", ["sdy.data_flow_edge", "sdy.func_data_flow_edge"])
def test_edges_propagate_at_once(name: str) -> None:
    """By default edges need no trait to come first."""
    entries = matching_entries(DEFAULT, op_named(name), frozenset())
    assert set(kind_directions(DEFAULT, entries, 0, multi_use=False).values()) == {BOTH}


selectors = st.builds(
    Selector,
    names=st.sampled_from([(), ("toy.*",), ("toy.f", "other.*"), ("none",)]),
    factor_kinds=st.lists(st.sampled_from(FACTOR_KINDS), max_size=2).map(tuple),
    uses=st.sampled_from(["any", "single", "multiple"]),
)
schedules = st.lists(
    st.lists(st.builds(Entry, selectors, st.sampled_from(Direction)), min_size=1, max_size=3).map(
        lambda entries: Level("level", tuple(entries))
    ),
    min_size=1,
    max_size=4,
).map(lambda levels: Schedule(tuple(levels)))


@given(schedules, st.booleans())
def test_a_level_only_adds_directions(schedule: Schedule, multi_use: bool) -> None:
    """Each level has the directions of the one before it; vectors are these, with none for blocked factors."""
    entries = matching_entries(schedule, op_named("toy.f"), frozenset())
    vectors = vectors_of_levels(schedule, entries, multi_use=multi_use)
    before = dict.fromkeys(FactorKind, NONE)
    for level, vector in enumerate(vectors):
        actual = kind_directions(schedule, entries, level, multi_use=multi_use)
        assert all(actual[kind] & before[kind] == before[kind] for kind in FactorKind)
        assert vector == (*(int(actual[kind]) for kind in FACTOR_KINDS), 0)
        before = actual


def test_a_predicate_is_asked_for_each_op() -> None:
    """Without predicates ops of one name and the same traits are matched once; with them the op decides."""
    chosen = op_named("toy.f")
    schedule = Schedule((Level("one", (Entry(Selector(predicate=lambda op: op is chosen)),)),))
    assert matching_entries(schedule, chosen, frozenset()) == (0,)
    assert matching_entries(schedule, op_named("toy.f"), frozenset()) == ()
