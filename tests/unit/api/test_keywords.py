"""Functions whose keywords are the fields of a value."""

from __future__ import annotations

import inspect

import click
import pytest
from attrs import field, fields, frozen

import shardy_py as sdy
from shardy_py.api.keywords import help_of, keywords, method_takes, narrow, takes
from shardy_py.api.options import ProgramInput, ProgramOptions, PropagateArguments
from shardy_py.cli.app import shardy
from shardy_py.cost.session import Session
from shardy_py.cost.sweeps.comparison import compare_schedules
from shardy_py.cost.sweeps.search import search_schedule
from shardy_py.errors import OptionError


@frozen(slots=False)
class Size:
    """A size.

    Args:
        width: The width, in
            elements.
    """

    width: int = 1


@frozen(slots=False)
class Box(Size):
    """A box.

    Args:
        depth: The depth.
    """

    depth: int = field(default=2, kw_only=True)


@takes(Box)
def volume(box_of_call: Box) -> int:
    """Return the volume.

    Returns:
        A number.
    """
    return box_of_call.width * box_of_call.depth


def test_fields_are_keywords():
    """A function takes the fields of its value, with their defaults, in their order."""
    assert (volume(), volume(3), volume(3, depth=5), volume(width=4)) == (2, 6, 15, 8)
    assert str(inspect.signature(volume)) == "(width: 'int' = 1, *, depth: 'int' = 2) -> 'int'"


def test_help_comes_from_the_value():
    """The docstring has the arguments of the value and of its bases between the summary and the rest."""
    assert help_of(Box) == {"width": "The width, in elements.", "depth": "The depth."}
    assert inspect.getdoc(volume) == (
        "Return the volume.\n\nArgs:\n    width: The width, in elements.\n    depth: The depth.\n\n"
        "Returns:\n    A number."
    )


def test_wrong_arguments_name_the_function():
    """Errors speak of the function, not of the value behind it."""
    with pytest.raises(OptionError, match=r"volume: width is 'x', not an integer"):
        volume("x")
    with pytest.raises(TypeError, match=r"volume\(\) got an unexpected keyword argument 'height'$"):
        volume(height=1)
    with pytest.raises(TypeError, match=r"keyword argument 'widht'; did you mean width\?"):
        volume(widht=1)
    with pytest.raises(TypeError, match=r"volume\(\) takes from 1 to 2 positional"):
        volume(1, 2)


def test_methods_take_values_too():
    """The object comes first."""

    class Shelf:
        @classmethod
        @method_takes(Box)
        def of(cls, box: Box) -> tuple[type, int]:
            return cls, box.depth

    assert Shelf.of(1, depth=7) == (Shelf, 7)


def test_values_become_keywords_again():
    """A value can be given to a function that takes one with more fields, in parts."""
    assert keywords(Box(3), Size(4)) == {"width": 4, "depth": 2}
    assert narrow(Box(3), Size) == Size(3)


@pytest.mark.parametrize("function", [sdy.propagate, Session.open, compare_schedules, search_schedule])
def test_every_argument_has_help(function):
    """The docstring of a function explains each of its arguments in words."""
    text = inspect.getdoc(function)
    for name in inspect.signature(function).parameters:
        if name != "cls":
            line = next(line for line in text.splitlines() if line.startswith(f"    {name}: "))
            assert len(line) > len(name) + 15
    assert "See there" not in text


def test_a_session_takes_what_propagate_takes_of_a_program():
    """The program and how it is prepared are given to both in the same way."""
    session, propagate_parameters = (inspect.signature(item).parameters for item in (Session.open, sdy.propagate))
    for class_ in (ProgramInput, ProgramOptions):
        for item in fields(class_):
            assert session[item.name] == propagate_parameters[item.name]


@pytest.mark.parametrize("command", ["propagate", "explain", "compare"])
def test_flags_have_the_defaults_of_the_options(command):
    """A command that propagates without a flag does what the function does without the argument."""
    options = {item.name: item for item in fields(PropagateArguments)}
    params = shardy.get_command(click.Context(shardy), command).params
    flags = {item.name: item for item in params if item.name in options and item.is_flag}
    assert {"conservative", "inline_calls"} <= set(flags)
    for name, flag in flags.items():
        assert flag.default == options[name].default, name
        assert flag.help.rstrip(".") in help_of(PropagateArguments)[name] or name == "record_copies"


def test_a_keyword_of_an_option_that_is_one_value_says_where_it_goes():
    """Plugins of a sweep go to all processes together with the other options of a run."""
    with pytest.raises(TypeError, match=r"argument 'plugins'; give options=SessionOptions\(plugins=...\), from "):
        compare_schedules("", plugins=[])
    with pytest.raises(TypeError, match=r"argument 'plugin'$"):
        compare_schedules("", plugin=[])
