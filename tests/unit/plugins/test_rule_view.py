"""Rules that look around their op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.errors import RuleError
from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import Registry

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
        assert op in {made}
        return False

    made = make_ops()[1]
    assert str(rule_of(read, made)) == "<([i, j])->([i, j]) {i=4, j=8}>"


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
