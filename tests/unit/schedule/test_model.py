"""Schedules as values."""

from __future__ import annotations

import pytest

from shardy_py.errors import OptionError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.ops import Broadcast, Elementwise
from shardy_py.schedule.model import Direction, Entry, Level, OpPriority, Schedule, Selector
from shardy_py.sharding.rule import FactorKind


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (Selector(), True),
        (Selector(names=("toy.add",)), True),
        (Selector(names=("other.*", "toy.a?d")), True),
        (Selector(names=("add",)), False),
        (Selector(traits=(Elementwise,)), True),
        (Selector(traits=(Broadcast,)), False),
        (Selector(names=("none",), traits=(Elementwise,)), True),
        (Selector(excluded_traits=(Elementwise,)), False),
        (Selector(names=("toy.add",), excluded_names=("toy.*",)), False),
        (Selector(names=("toy.add",), predicate=lambda op: bool(op.results)), False),
    ],
)
def test_a_selector_chooses_ops(selector: Selector, expected: bool) -> None:
    """A name or a trait chooses an op, and exclusions and predicates narrow the choice."""
    assert selector.matches_op(Op(Program(), "toy.add"), frozenset((Elementwise,))) is expected


def test_uses_and_factors_narrow_an_entry() -> None:
    """Without them all are meant."""
    assert [Selector(uses=uses).matches_uses(multi_use=True) for uses in ("any", "single", "multiple")] == [
        True,
        False,
        True,
    ]
    reduced = Selector(factor_kinds=(FactorKind.REDUCTION,))
    assert [kind for kind in FactorKind if reduced.matches_factor(kind)] == [FactorKind.REDUCTION]
    assert all(Selector().matches_factor(kind) for kind in FactorKind)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Selector(names="toy.add"),  # type: ignore[arg-type]
        lambda: Selector(traits=("Elementwise",)),  # type: ignore[arg-type]
        lambda: Selector(uses="twice"),  # type: ignore[arg-type]
        lambda: Selector(predicate=3),  # type: ignore[arg-type]
        lambda: Entry("toy.add"),  # type: ignore[arg-type]
        lambda: Entry(Selector(), 3),  # type: ignore[arg-type]
        lambda: Level("one", (Selector(),)),  # type: ignore[arg-type]
        lambda: OpPriority("first", Entry(Selector())),  # type: ignore[arg-type]
    ],
)
def test_unfit_parts_are_refused_at_once(make: object) -> None:
    """The error is about the schedule, where it is made and not where it runs."""
    with pytest.raises(OptionError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.diagnostics[0].code == "invalid-schedule"


def test_a_schedule_has_a_level() -> None:
    """Nothing would propagate without one."""
    with pytest.raises(OptionError, match="at least one level"):
        Schedule(())


def test_entries_are_those_of_all_levels() -> None:
    """Each comes with the index of its level, in order."""
    first, second = Entry(Selector(names=("a.b",))), Entry(Selector(), Direction.FORWARD)
    schedule = Schedule((Level("first", (first, second)), Level("second", (second,))))
    assert schedule.entries == ((0, first), (0, second), (1, second))
    assert str(schedule) == "0. first:\n  a.b -> BOTH\n  * -> FORWARD\n1. second:\n  * -> FORWARD"
