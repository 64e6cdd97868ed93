"""Schedules that have names."""

from __future__ import annotations

import pytest

from shardy_py.errors import OptionError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.schedule.builtin import BUILTIN, NAMED, builtin_schedule
from shardy_py.schedule.default import DEFAULT, kind_directions, matching_entries


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
