"""Arguments of the main function by number, name, alias and glob."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.api.main_function import MainValues, arguments_of
from shardy_py.ir.graph.builder import Builder
from shardy_py.ir.graph.types import TensorType


def _values() -> MainValues:
    """Return two arguments, the first of which has three names."""
    builder = Builder()
    with builder.function("main", [TensorType((4,), "f32")] * 2) as arguments:
        builder.return_(*arguments)
    main = builder.build().functions["main"]
    aliases = {"head.weight": 0, "inner.head.weight": 0}
    return MainValues(main, arguments_of(main), ("emb.weight", "bias"), "argument", lambda n: f"arg{n}", aliases)


def test_an_alias_finds_its_argument() -> None:
    """As the first name and the number do; an error lists all names."""
    values = _values()
    assert values.find("head.weight") is values.find("emb.weight") is values.find(0)
    with pytest.raises(sdy.OptionError, match=r"called emb\.weight, bias, head\.weight, inner\.head\.weight"):
        values.find("tail.weight")


def test_a_glob_finds_an_argument_once_with_the_names_that_match() -> None:
    """Each argument comes once, however many of its names match."""
    values = _values()
    ((found, names),) = values.find_all("*.weight")
    assert found is values.find(0)
    assert names == {"emb.weight", "head.weight", "inner.head.weight"}
    assert [own for _, own in values.find_all("*head.weight")] == [{"head.weight", "inner.head.weight"}]
    assert values.find_all(0) == [(found, frozenset())]
