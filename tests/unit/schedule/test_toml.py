"""Schedules as TOML."""

from __future__ import annotations

import pytest

from shardy_py.errors import OptionError
from shardy_py.ir.interfaces.ops import Elementwise, Trait
from shardy_py.schedule.builtin import DEFAULT, FLAT, NAMED, builtin_schedule
from shardy_py.schedule.from_options import order_ops
from shardy_py.schedule.model import Direction, Entry, Level, Schedule, Selector
from shardy_py.schedule.toml import format_schedule, parse_schedule, read_schedule
from shardy_py.sharding.rule import FactorKind


@pytest.mark.parametrize("name", sorted(NAMED))
def test_built_in_orderings_survive_toml(name: str) -> None:
    """A schedule written as TOML and read back is the same value."""
    schedule = builtin_schedule(name)
    assert parse_schedule(format_schedule(schedule)) == schedule


def test_a_file_may_settle() -> None:
    """It does where it says so, or where what follows does and it says nothing else."""
    assert not parse_schedule('[[level]]\nentries = ["toy.add"]').settles
    assert parse_schedule('settles = true\n[[level]]\nentries = ["toy.add"]').settles
    assert parse_schedule('then = "settled"') == builtin_schedule("settled")
    assert parse_schedule('then = "settled"\nsettles = false') == DEFAULT
    with pytest.raises(OptionError, match="settles is 'yes'"):
        parse_schedule('settles = "yes"')


def test_everything_a_schedule_can_say_survives_toml() -> None:
    """Names, exclusions, kinds, uses, directions and odd characters are kept."""
    selector = Selector(
        names=('a"\\\x7f\n.*', "é.f"),
        traits=(Elementwise, Trait("mine")),
        excluded_traits=(Trait("x"),),
        excluded_names=("a.b",),
        factor_kinds=(FactorKind.REDUCTION, FactorKind.PASS_THROUGH),
        uses="multiple",
    )
    directions = (Direction.FORWARD, Direction.BACKWARD, Direction.NONE, Direction.BOTH)
    schedule = Schedule((Level("l\t1", tuple(Entry(selector, item) for item in directions)),))
    assert parse_schedule(format_schedule(schedule), more_traits=("mine", "x")) == schedule


def test_a_file_names_known_traits_only() -> None:
    """A trait that nobody gives is an error with the closest known one and all others."""
    text = '[[level]]\nentries = [{traits = ["Elementwise", "ElementWise"], except-traits = ["Broadcats"]}]'
    with pytest.raises(OptionError) as caught:
        parse_schedule(text)
    first, second = caught.value.diagnostics
    assert first.message == "level 0, entry 0: traits: there is no trait 'ElementWise'"
    assert first.hint.startswith("did you mean Elementwise? the known traits are AsSdyConstant, ")
    assert second.hint.startswith("did you mean Broadcast")
    assert parse_schedule(text, more_traits=("ElementWise", "Broadcats")).levels[0].entries


def test_a_function_is_no_data() -> None:
    """A schedule with a predicate cannot be written."""
    schedule = order_ops([[lambda op: op.name == "a.b"]])
    with pytest.raises(OptionError, match="cannot be written as TOML"):
        format_schedule(schedule)


def test_a_file_may_list_names_only() -> None:
    """Levels that are written come first; the rest follows as by default, as another schedule, or not at all."""
    text = '{}[[level]]\nentries = ["toy.add", "toy.m*"]\n'
    level = Level("level 0", (Entry(Selector(names=("toy.add",))), Entry(Selector(names=("toy.m*",)))))
    assert parse_schedule(text.format("")) == Schedule((level, *DEFAULT.levels))
    assert parse_schedule(text.format("then = 'flat'\n")) == Schedule((level, *FLAT.levels))
    assert parse_schedule(text.format("then = 'nothing'\n")) == Schedule((level,))
    assert parse_schedule(text.format(""), rest=FLAT) == Schedule((level, *FLAT.levels))


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("[[level", ["this is not TOML: Expected ']]' at the end of an array declaration (at end of document)"]),
        ("levels = 3", ["unknown key 'levels'"]),
        ("level = 3", ["level is not a list of tables"]),
        ("then = 'nothing'", ["the schedule has no level"]),
        ("then = 'later'", ["then is 'later'"]),
        ("[[level]]\nname = 3", ["level 0: name is 3, not a text", "level 0: there are no entries"]),
        (
            "[[level]]\nentries = [3, {op = 'a'}]",
            ["level 0, entry 0: 3 is neither", "level 0, entry 1: unknown key 'op'"],
        ),
        ("[[level]]\nentries = [{names = 'a'}]", ["level 0, entry 0: names is 'a', not a list of texts"]),
        (
            "[[level]]\nentries = [{uses = 'one', direction = 1, factors = ['sum']}]",
            [
                "level 0, entry 0: factors is 'sum'",
                "level 0, entry 0: uses is 'one'",
                "level 0, entry 0: direction is 1",
            ],
        ),
    ],
)
def test_all_mistakes_in_a_file_are_listed(text: str, messages: list[str]) -> None:
    """Each problem says where it is."""
    with pytest.raises(OptionError) as caught:
        parse_schedule(text, source="s.toml")
    problems = [item.message for item in caught.value.diagnostics]
    assert len(problems) == len(messages)
    assert all(message.startswith(start) for message, start in zip(problems, messages, strict=True)), problems
    assert {item.location for item in caught.value.diagnostics} == {"s.toml"}


def test_a_file_that_is_not_there_is_an_option_error() -> None:
    """The error names the file and the schedules that need none."""
    with pytest.raises(OptionError, match="elementwise-first"):
        read_schedule("no such file.toml")
