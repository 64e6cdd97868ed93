"""Rules that a registry remembers from one program to the next."""

from __future__ import annotations

from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.ir.graph.attributes import SymbolRef
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import tensor
from shardy_py.plugins import Registry, rule_memory
from shardy_py.plugins.rule_memory import attributes_look


def _op(name: str = "toy.copy", size: int = 4, source: str = "toy.source", **attributes: object) -> Op:
    program = Program()
    made = program.body.append(Op(program, source, result_types=[tensor(size)]))
    return program.body.append(Op(program, name, made.results, [tensor(size)], attributes=attributes))


@pytest.fixture
def asked() -> list[Op]:
    """The ops that the rule function was asked about."""
    return []


@pytest.fixture
def registry(asked: list[Op]) -> Registry:
    """A registry of two ops, the rule of one of which depends on more than its look."""
    toy = sdy.Dialect("toy")

    def rule(op: Op) -> object:
        asked.append(op)
        return sdy.rule("i -> i")

    toy.op("toy.copy", rule=rule)
    toy.op("toy.near", rule=rule, contextual=True)
    toy.op("toy.of_source", rule=rule, contextual=lambda op: op.operands[0].owner.name)
    return Registry.of([toy])


def test_ops_that_look_alike_in_two_programs_share_one_rule(registry: Registry, asked: list[Op]) -> None:
    """A rule function is asked once about ops of the same name, types and attributes, whatever their programs."""
    first, second = (registry.get_sharding_rule(_op(axis=1)) for _ in range(2))
    assert first is second
    assert len(asked) == 1


def test_ops_that_look_alike_around_them_share_one_rule(registry: Registry, asked: list[Op]) -> None:
    """A rule that reads more than its op is made once for what a function says that it reads."""
    first, second = (registry.get_sharding_rule(_op("toy.of_source")) for _ in range(2))
    assert first is second
    assert len(asked) == 1


@pytest.mark.parametrize("options", [{}, {"contextual": True}, {"contextual": lambda op: op.name}])
def test_equal_facts_are_one_object(options: dict[str, Any]) -> None:
    """Ops with equal traits and rules share their facts, also where a function gives more traits, and others do not."""
    toy = sdy.Dialect("toy")
    toy.op("toy.copy", rule="i -> i", traits_of=lambda op: [sdy.Pure] if op.attributes["axis"] else [], **options)
    registry = Registry.of([toy])
    first, second, other = (registry.get_facts(_op(axis=axis)) for axis in (1, 1, 0))
    assert first is second
    assert first.traits == {sdy.Pure}
    assert other.traits == frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_op(size=4), _op(size=8)),
        (_op(axis=1), _op(axis=True)),
        (_op(axis=(1,)), _op(axis=1)),
        (_op("toy.near"), _op("toy.near")),
        (_op("toy.of_source"), _op("toy.of_source", source="toy.other")),
        (_op(callee=SymbolRef("f")), _op(callee=SymbolRef("f"))),
    ],
    ids=["types", "integer and boolean", "tuple", "contextual", "context", "symbol"],
)
def test_ops_that_may_differ_have_rules_of_their_own(registry: Registry, asked: list[Op], one: Op, other: Op) -> None:
    """Another look, a rule that depends on more than that, and a symbol of another program are asked about again."""
    registry.get_sharding_rule(one)
    registry.get_sharding_rule(other)
    assert asked == [one, other]


def test_options_have_rules_of_their_own(registry: Registry, asked: list[Op]) -> None:
    """A registry under other options does not take the rules of this one."""
    registry.get_sharding_rule(_op())
    registry.with_options(sdy.RuleOptions(conservative=True)).get_sharding_rule(_op())
    assert len(asked) == 2


def test_a_memory_is_emptied_when_it_is_full(
    registry: Registry, asked: list[Op], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of rules has a limit."""
    monkeypatch.setattr(rule_memory, "MANY_RULES", 2)
    for size in (1, 2, 3, 3, 1):
        registry.get_sharding_rule(_op(size=size))
    assert [op.operands[0].type.shape[0] for op in asked] == [1, 2, 3, 1]


def test_attributes_of_one_program_have_no_look() -> None:
    """Attributes with a native object or a symbol inside are not compared between programs."""
    assert attributes_look({"a": [1, (2.0, "x")]}) is not None
    assert attributes_look({"a": [1, (SymbolRef("f"),)]}) is None
    assert attributes_look({"a": {"b": object()}}) is None
