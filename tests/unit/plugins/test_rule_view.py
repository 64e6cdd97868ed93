"""A rule sees its op only, and is remembered by what it sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.errors import RuleError
from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.attributes import SymbolRef
from shardy_py.ir.graph.program import Op, Program
from shardy_py.plugins import Registry, rule_view
from shardy_py.plugins.rule_view import attributes_look

T = tensor(4, 8)


def make_ops() -> tuple[Op, Op]:
    """Return two ops of the same types in a row; the second has a region."""
    b = Builder()
    with b.function("main", [T]) as (x,):
        first = b.emit("toy.op", [x], [T])
        second = b.emit("toy.op", [first.result], [T])
        b.return_(second.result)
    return first, second


def rule_of(read: Callable[[Any], object], op: Op, **options: Any) -> Any:
    """Return the rule of an op from a function that reads something first."""

    def rule(op: Any) -> object:
        return sdy.rule("i j -> i j", need_replication="j" if read(op) else [])

    toy = sdy.Dialect("toy")
    toy.op("toy.op", rule=rule, **options)
    return Registry.of([toy]).get_sharding_rule(op)


READS: dict[str, tuple[Callable[[Any], object], str]] = {
    "whether an operand is an argument": (lambda op: op.operands[0].is_block_argument, "the producer of operand 0"),
    "the producer": (lambda op: op.operands[0].defining_op, "the producer of operand 0"),
    "which result an operand is": (lambda op: op.operands[0].index, "the index at the producer of operand 0"),
    "the users of an operand": (lambda op: op.operands[0].has_one_use, "the users of operand 0"),
    "the users of a result": (lambda op: op.result.users, "the users of result 0"),
    "the regions": (lambda op: op.regions, "the regions of the op"),
    "the op around": (lambda op: op.parent_op, "the block around the op"),
    "the next op": (lambda op: op.next, "the op behind this one"),
    "the program": (lambda op: op.program.meshes, "the program around the op"),
    "the number of the op": (lambda op: op.id, "the number of the op in its program"),
    "the number of a value": (lambda op: op.operands[0].id, "the number in its program of operand 0"),
    "the op of MLIR": (lambda op: op.handle, "the op of the module behind the program"),
    "all ops inside": (lambda op: list(op.walk()), "the regions of the op"),
}


@pytest.mark.parametrize("name", READS)
def test_a_rule_that_looks_around_its_op_is_an_error(name: str) -> None:
    """What ops of one kind do not share cannot be read, and the error has the line of the plugin that reads it."""
    read, words = READS[name]
    with pytest.raises(RuleError, match=f"the rule function reads {words}") as caught:
        rule_of(read, make_ops()[0])
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.op) == ("rule-reads-context", "toy.op")
    assert "contextual=True" in problem.hint
    assert f"test_rule_view.py:{read.__code__.co_firstlineno}" in problem.hint


@pytest.mark.parametrize("name", READS)
def test_a_contextual_rule_may_look_around(name: str) -> None:
    """Where a definition says that its rule looks around, it does; a function that returns what it reads says so."""
    read, _ = READS[name]
    for contextual in (True, lambda op: op.operands[0].is_block_argument):
        assert rule_of(read, make_ops()[0], contextual=contextual) is not None


def test_an_error_that_a_rule_catches_is_an_error() -> None:
    """A rule function cannot hide what it tried to read."""

    def read(op: Any) -> object:
        try:
            return op.operands[0].defining_op
        except Exception:
            return None

    with pytest.raises(RuleError, match="reads the producer of operand 0"):
        rule_of(read, make_ops()[1])


def test_what_ops_of_one_kind_share_can_be_read() -> None:
    """Names, types, attributes, the location and the op of a result are those of the op itself."""

    def read(op: Any) -> object:
        assert isinstance(op, Op)
        assert (op.name, op.location, dict(op.attributes)) == ("toy.op", "", {})
        assert [value.type for value in (*op.operands, *op.results)] == [T, T]
        assert op.result.defining_op is op
        assert op.result.index == 0
        assert op.operands[0].shape == op.result.shape == (4, 8)
        assert "operand 0" in f"{op.operands[0]!r}"
        assert op in {first_op}
        return False

    first_op = make_ops()[1]
    assert str(rule_of(read, first_op)) == "<([i, j])->([i, j]) {i=4, j=8}>"


def test_operands_of_one_value_are_two_operands() -> None:
    """Whether two operands are the same value differs between ops of one kind, so a rule does not see it."""
    b = Builder()
    with b.function("main", [T, T]) as (x, y):
        ops = [b.emit("toy.op", values, [T]) for values in ([x, x], [x, y])]
        b.return_()
    seen = []

    def rule(op: Any) -> object:
        seen.append(op.operands[0] is op.operands[1] or op.operands[0] == op.operands[1])
        return sdy.rule("i j, i j -> i j")

    toy = sdy.Dialect("toy")
    toy.op("toy.op", rule=rule)
    for op in ops:
        Registry.of([toy]).get_sharding_rule(op)
    assert seen == [False, False]


def _op(name: str = "toy.copy", size: int = 4, source: str = "toy.source", **attributes: object) -> Op:
    program = Program()
    new_op = program.body.append(Op(program, source, result_types=[tensor(size)]))
    return program.body.append(Op(program, name, new_op.results, [tensor(size)], attributes=attributes))


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
    ("left", "right"),
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
def test_ops_that_may_differ_have_rules_of_their_own(registry: Registry, asked: list[Op], left: Op, right: Op) -> None:
    """Another look, a rule that depends on more than that, and a symbol of another program are asked about again."""
    registry.get_sharding_rule(left)
    registry.get_sharding_rule(right)
    assert asked == [left, right]


def test_options_have_rules_of_their_own(registry: Registry, asked: list[Op]) -> None:
    """A registry under other options does not take the rules of this one."""
    registry.get_sharding_rule(_op())
    registry.with_options(sdy.RuleOptions(conservative=True)).get_sharding_rule(_op())
    assert len(asked) == 2


def test_a_memory_is_emptied_when_it_is_full(
    registry: Registry, asked: list[Op], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of rules has a limit."""
    monkeypatch.setattr(rule_view, "MANY_RULES", 2)
    for size in (1, 2, 3, 3, 1):
        registry.get_sharding_rule(_op(size=size))
    assert [op.operands[0].type.shape[0] for op in asked] == [1, 2, 3, 1]


def test_attributes_of_one_program_have_no_look() -> None:
    """Attributes with a native object or a symbol inside are not compared between programs."""
    assert attributes_look({"a": [1, (2.0, "x")]}) is not None
    assert attributes_look({"a": [1, (SymbolRef("f"),)]}) is None
    assert attributes_look({"a": {"b": object()}}) is None
