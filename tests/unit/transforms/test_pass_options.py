"""Pass options as text."""

from typing import ClassVar

import pytest
from attrs import frozen

from shardy_py.errors import OptionError
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.transforms.pass_options import make_pass, option_fields, split_options


@frozen
class ToyPass:
    """A pass with an option of every kind."""

    name: ClassVar[str] = "toy"

    keep_all: bool = False
    limit: int = 4
    directory: str = ""
    names: tuple[str, ...] = ()

    def run(self, program: Program, context: PassContext) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("  a=1   b ", {"a": "1", "b": ""}),
        ("a='x y' b=\"{\"", {"a": "x y", "b": "{"}),
        ("a={x {y} z} b=2", {"a": "x {y} z", "b": "2"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=", {"a": ""}),
    ],
)
def test_options_are_split_at_white_space_outside_quotes_and_braces(text, expected):
    """As MLIR does it."""
    assert split_options(text) == expected


@pytest.mark.parametrize("text", ["=1", "a={x", "a='x"])
def test_malformed_options_are_errors(text):
    """A missing name or closing quote is found."""
    with pytest.raises(OptionError):
        split_options(text)


def test_options_take_the_kind_of_their_default():
    """Names are written with dashes; a flag alone means true."""
    options = {"keep-all": "", "limit": "7", "directory": "d", "names": "a, b"}
    assert make_pass(ToyPass, options) == ToyPass(keep_all=True, limit=7, directory="d", names=("a", "b"))
    assert tuple(option_fields(ToyPass)) == ("keep-all", "limit", "directory", "names")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("keep-all", "maybe", "expected true or false"),
        ("limit", "x", "expected an integer"),
        ("keep-al", "true", "did you mean keep-all"),
        ("zzz", "1", "known: directory, keep-all, limit, names"),
    ],
)
def test_wrong_options_are_errors_that_help(name, value, message):
    """The message says what is expected, or which name is close."""
    with pytest.raises(OptionError, match=message):
        make_pass(ToyPass, {name: value})
