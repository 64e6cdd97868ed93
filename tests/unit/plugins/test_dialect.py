"""Dialects and op definitions."""

from pathlib import Path

import pytest
from attrs import evolve

import shardy_py.plugins
from shardy_py.errors import PluginError
from shardy_py.plugins import Dialect, Elementwise, OpDefinition, Pure, Trait
from shardy_py.sharding.rule import OpShardingRule


def rule(op):
    """Return a rule without factors."""
    return OpShardingRule((), (), ((),))


def code_of(error):
    """Return the code of the first problem."""
    return error.value.diagnostics[0].code


def test_a_plain_call_defines_the_op_and_returns_the_definition():
    """`Dialect.op` as a statement adds a definition with everything it was given."""
    toy = Dialect("toy")
    definition = toy.op("toy.add", traits=[Elementwise, Pure], rule=rule, sharding_attribute="out_sharding")
    assert toy.definitions == (definition,)
    assert definition.traits == {Elementwise, Pure}
    assert definition.rule is rule
    assert definition.sharding_attribute == "out_sharding"


def test_the_decorator_sets_the_rule_and_returns_the_function():
    """`Dialect.op` as a decorator makes the function the rule of every name it is stacked under."""
    toy = Dialect("toy")
    decorated = toy.op("toy.a")(toy.op("toy.b", traits=[Pure])(rule))
    assert decorated is rule
    assert {item.name: item.rule for item in toy.definitions} == {"toy.a": rule, "toy.b": rule}
    assert toy.definitions[1].traits | toy.definitions[0].traits == {Pure}


def test_a_definition_is_a_value():
    """Two definitions made alike are equal, whichever dialect made them."""
    assert Dialect("x").op("toy.add", traits=[Pure]) == OpDefinition("toy.add", traits=frozenset([Pure]))


def test_an_op_is_defined_once_per_dialect():
    """A second definition of the same name in one dialect is an error that names both."""
    toy = Dialect("toy")
    toy.op("toy.add")
    with pytest.raises(PluginError, match=r"dialect 'toy' defines the op twice") as error:
        toy.op("toy.add")
    assert error.value.diagnostics[0].op == "toy.add"
    assert "is defined at" in error.value.diagnostics[0].hint


def test_a_cell_that_runs_again_is_told_from_a_second_definition():
    """In a notebook the same line defines an op twice, and there is no other place to name."""
    toy = Dialect("toy")

    def cell():
        toy.op("toy.add")

    cell()
    with pytest.raises(PluginError, match=r"defines the op twice") as error:
        cell()
    assert "ran twice: make the dialect again" in error.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"name": ""}, "invalid-op-name"),
        ({"name": "toy.add", "traits": ["Elementwise"]}, "invalid-trait"),
        ({"name": "toy.*", "rule": rule}, "invalid-glob"),
        ({"name": "toy.add", "rule": 3}, "invalid-rule"),
        ({"name": "toy.add", "indexing": [None]}, "invalid-indexing"),
    ],
)
def test_unfit_arguments_are_refused_at_once(arguments, code):
    """A wrong name, trait or rule is a plugin error where it is written, not where it is used."""
    with pytest.raises(PluginError) as error:
        Dialect("toy").op(**arguments)
    assert code_of(error) == code


@pytest.mark.parametrize(
    "parts",
    [
        {"local": lambda op, shard: [], "emission": lambda builder, op: []},
        {"indexing": lambda op: None},
        {"traits": [Elementwise], "local": lambda op, shard: []},
    ],
)
def test_parts_are_added_as_if_they_had_been_given(parts):
    """A definition with more parts is the one that `attrs.evolve` makes, and stays in its dialect."""
    dialect = Dialect("toy")
    definition = dialect.op("toy.f", traits=[Pure])
    updated = definition.with_parts(parts)
    assert updated == evolve(definition, **parts)
    assert updated.location == definition.location
    updated(lambda op: None)
    assert dialect.definitions[0].rule is not None


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("toy.f", {"local": 3}),
        ("toy.f", {"indexing": None, "cost": dict}),
        ("toy.f", {"data_flow": object()}),
        ("toy.*", {"local": lambda op, shard: []}),
    ],
)
def test_parts_are_checked(name, parts):
    """Parts that are unfit alone, or for a name with wildcards, are refused as they are where an op is defined."""
    definition = OpDefinition(name)
    with pytest.raises(PluginError) as expected:
        evolve(definition, **parts)
    with pytest.raises(PluginError) as refused:
        definition.with_parts(parts)
    assert refused.value.diagnostics == expected.value.diagnostics


def test_a_rule_is_given_once():
    """A definition that has a rule already is no decorator, and neither is one without a dialect."""
    with pytest.raises(PluginError, match="has a rule already"):
        Dialect("toy").op("toy.a", rule=rule)(rule)
    with pytest.raises(PluginError, match="belongs to no dialect"):
        OpDefinition("toy.a")(rule)


def test_the_reference_page_lists_every_trait():
    """A trait that plugins can use is in the table of traits in the documentation."""
    page = (Path(__file__).parents[3] / "docs/reference/plugins.md").read_text(encoding="utf-8")
    traits = [name for name, value in vars(shardy_py.plugins).items() if isinstance(value, Trait)]
    assert len(traits) >= 10
    assert [name for name in traits if f"| `{name}` |" not in page] == []
