"""Schedules made of op priorities, of users and of plugins."""

from __future__ import annotations

import pytest

from shardy_py.errors import OptionError, PluginError
from shardy_py.ir.interfaces.ops import Elementwise
from shardy_py.schedule.builtin import builtin_schedule
from shardy_py.schedule.default import DEFAULT, FLAT
from shardy_py.schedule.model import Direction, Entry, Level, OpPriority, Selector
from shardy_py.schedule.op_priorities import order_ops, with_plugin_priorities


def test_what_comes_first_settles_with_the_rest() -> None:
    """Levels of users and plugins keep that the rest settles; it is printed."""
    schedule = order_ops([["toy.add"]], rest=builtin_schedule("settled"))
    assert schedule.settles
    assert str(schedule).endswith("the last level again, until nothing changes")
    priority = OpPriority(0, Entry(Selector(names=("toy.add",))))
    assert with_plugin_priorities(builtin_schedule("settled"), [priority]).settles


def test_listed_ops_come_first() -> None:
    """Each list is a level of its own before the levels of the rest."""
    entry = Entry(Selector(names=("toy.f",)), Direction.FORWARD)
    level = Level("mine", (entry,))
    schedule = order_ops([["toy.add", Elementwise], [entry, Selector(uses="single")], level], rest=FLAT)
    assert schedule.levels == (
        Level("given level 0", (Entry(Selector(names=("toy.add",), traits=(Elementwise,))),)),
        Level("given level 1", (entry, Entry(Selector(uses="single")))),
        level,
        *FLAT.levels,
    )


def test_an_op_outside_a_list_is_a_level() -> None:
    """An ordered list of ops needs no lists in it."""
    alone = ["toy.f", Elementwise, Selector(uses="single"), Entry(Selector(names=("toy.g",)))]
    assert order_ops(alone, rest=FLAT) == order_ops([[item] for item in alone], rest=FLAT)
    assert order_ops(["toy.f", ["toy.g", "toy.h"]]) == order_ops([["toy.f"], ["toy.g", "toy.h"]])


@pytest.mark.parametrize("given", ["toy.add", 3, [3], [[3]], [None], {"toy.add"}, {"toy.add": 0}])
def test_anything_else_is_refused(given: object) -> None:
    """What is no list, or chooses no ops, is an error that shows the form."""
    with pytest.raises(OptionError, match="op_priorities") as caught:
        order_ops(given)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].hint


def test_a_plugin_replaces_what_the_default_says_of_its_ops() -> None:
    """The named ops leave all levels but the last and enter the plugin's."""
    entry = Entry(Selector(names=("toy.late",)))
    schedule = with_plugin_priorities(DEFAULT, [OpPriority(2, entry)])
    assert schedule.levels[-1] == DEFAULT.levels[-1]
    assert schedule.levels[2].entries[-1] == entry
    for level in schedule.levels[:-1]:
        assert all("toy.late" in item.selector.excluded_names for item in level.entries if item != entry)
    assert with_plugin_priorities(DEFAULT, []) is DEFAULT


def test_a_level_the_default_does_not_have_is_refused() -> None:
    """A priority past the last level is an error of the plugin."""
    with pytest.raises(PluginError, match="there is no level 9"):
        with_plugin_priorities(DEFAULT, [OpPriority(9, Entry(Selector(names=("toy.f",))))])


def test_what_can_be_read_once_only_is_no_list() -> None:
    """The order is read several times, so that a generator is refused, and not found empty later."""
    with pytest.raises(OptionError, match="not a list"):
        order_ops(name for name in ["toy.f"])  # type: ignore[arg-type]
