"""What the coverage report says, and that its stubs work."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shardy_py.api import stub_rules as stub_rules_module
from shardy_py.api.coverage import Coverage, report_coverage, require_coverage, signature, survey_rules
from shardy_py.api.stub_rules import stub_rules
from shardy_py.errors import UnsupportedError
from shardy_py.ir import Builder, tensor
from shardy_py.ir.graph.program import Op, Program
from shardy_py.plugins import Registry
from shardy_py.sharding.verify_rule import verify_op_sharding_rule
from tests.unit.api.programs import program, registry


def load(text: str, path: Path) -> ModuleType:
    """Import a text as a module."""
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def matmul() -> Op:
    """Return the op without a rule."""
    return next(op for op in program().walk() if op.name == "toy.matmul")


def report(module: Program) -> Coverage:
    """Return the report on a program that propagation left as it was."""
    return report_coverage(survey_rules(module, registry()), module, registry())


def test_report() -> None:
    """The op without a rule is reported with how often it occurs and the values it leaves without an axis."""
    coverage = report(program())
    (missing,) = coverage.missing
    assert (missing.name, missing.count) == ("toy.matmul", 1)
    # The weights and the product; x itself has an axis.
    assert missing.unsharded == 2
    assert missing.example == "(tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>"
    # Constants and terminators do not count.
    assert (coverage.ops, coverage.covered, coverage.is_complete) == (2, 1, False)


@pytest.mark.parametrize(("result", "count"), [((), 1), (None, 0)], ids=["a number", "nothing"])
def test_an_op_that_makes_a_number_of_a_tensor_counts(result: tuple[int, ...] | None, count: int) -> None:
    """Without a rule the tensor is gathered to reduce it; where no tensor comes out there is nothing to reduce."""
    builder = Builder()
    with builder.function("main", [tensor(8)]) as (x,):
        total = builder.emit("toy.total", [x], [] if result is None else [tensor(*result)])
        builder.return_(*total.results)
    coverage = survey_rules(builder.program, Registry.of([])).coverage
    assert (coverage.ops, [item.name for item in coverage.missing]) == (count, ["toy.total"] * count)


def test_the_size_of_a_tensor_needs_no_rule() -> None:
    """An op that has a rule among the extended ones takes no elements where it makes a number."""
    builder = Builder()
    with builder.function("main", [tensor(8)]) as (x,):
        builder.return_(*builder.emit("stablehlo.get_dimension_size", [x], [tensor()], {"dimension": 0}).results)
    installed = Registry.from_entry_points()
    assert survey_rules(builder.program, installed).coverage.is_complete


def test_the_report_is_about_the_given_program() -> None:
    """What passes add or erase does not count, but the cost is that in the result."""
    module = program()
    surveyed = survey_rules(module, registry())
    result = matmul().program
    result.shardings.clear()
    for op in list(result.walk()):
        if op.name == "toy.add":
            op.name = "toy.other"
    coverage = report_coverage(surveyed, result, registry())
    assert [(item.name, item.count, item.unsharded) for item in coverage.missing] == [("toy.matmul", 1, 0)]
    assert coverage.ops == 2


def test_the_report_waits_until_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stub is guessed before, and the report then says the same although the ops have gone."""
    before = survey_rules(program(), registry()).coverage
    module = program()
    survey = survey_rules(module, registry())
    guess = stub_rules_module._stub
    guessed = []
    monkeypatch.setattr(stub_rules_module, "_stub", lambda *given: guessed.append(given) or guess(*given))
    for op in reversed(list(module.walk())):
        if op.parent is not None and not op.regions:
            op.erase()
    assert not guessed
    assert survey.coverage == before
    assert guessed


def test_unsharded_needs_a_sharded_neighbour() -> None:
    """Where nothing at an op has an axis, its missing rule has cost nothing."""
    unsharded = program()
    unsharded.shardings.clear()
    assert report(unsharded).missing[0].unsharded == 0


def test_strict_names_every_op_kind() -> None:
    """Strictness refuses a program with one diagnostic per op kind without a rule."""
    with pytest.raises(UnsupportedError) as caught:
        require_coverage(program(), registry())
    assert [(item.code, item.op) for item in caught.value.diagnostics] == [("missing-rule", "toy.matmul")]


def test_stub_is_a_plugin(tmp_path: Path) -> None:
    """A stub is a plugin as it stands: with it no rule is missing."""
    (missing,) = report(program()).missing
    stub = load(missing.stub, tmp_path / "stub.py")
    known = Registry.of([*stub.shardy_register_dialects()])
    assert str(known.get_sharding_rule(matmul())) == "<([i, j], [j, k])->([i, k]) {i=8, j=16, k=4} reduction={j}>"
    assert 'toy.op("toy.matmul", rule="i j, j k -> i k", reduction="j")' in missing.stub


def test_a_stub_is_guessed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stub of a name stands in its own plugin and in that of all names, and is guessed for both at once."""
    guess = stub_rules_module._stub
    guessed = []

    def noted(dialect: str, ops: Sequence[Op], *told: Any) -> str:
        guessed.append(ops[0].name)
        return guess(dialect, ops, *told)

    monkeypatch.setattr(stub_rules_module, "_stub", noted)
    coverage = survey_rules(program(), registry()).coverage
    assert guessed == ["toy.matmul"]
    assert coverage.stubs == coverage.missing[0].stub


def op_of(name: str, operands: list[tuple[int | None, ...]], results: list[tuple[int | None, ...]]) -> Op:
    """Return an op with tensors of these shapes."""
    builder = Builder()
    with builder.function("main", [tensor(*shape) for shape in operands]) as values:
        builder.op(name, list(values), [tensor(*shape) for shape in results])
        builder.return_()
    return next(op for op in builder.program.walk() if op.name == name)


@pytest.mark.parametrize(
    ("operands", "results", "text"),
    [
        ([(8, 1)], [(8, 4)], 'rule="i j -> i k"'),
        ([(), (8,)], [(8,), ()], 'rule=", i -> i,"'),
        ([], [(8, 4), (4,)], 'rule="-> i j, j"'),
        ([()], [(8,)], 'rule="-> i"'),
        ([(8, 4)], [], 'rule="i j ->"'),
        ([(6, 7), (7, 6)], [()], 'rule="i j, j i ->", reduction="i, j"'),
        ([tuple(range(2, 30))], [(2,)], "a b c d e f g h d0 d1 -> i"),
    ],
)
def test_a_stub_is_one_line(operands: Any, results: Any, text: str, tmp_path: Path) -> None:
    """The guess is written as a text that fits the op: one name per dimension, the same where sizes are equal."""
    op = op_of("toy.any", operands, results)
    written = stub_rules([op])
    assert text in written
    stub = load(written, tmp_path / "stub.py")
    rule = Registry.of(stub.shardy_register_dialects()).get_sharding_rule(op)
    assert rule is not None
    shapes = [[value.shape for value in values] for values in (op.operands, op.results)]
    assert not rule.may_stand_on_op or verify_op_sharding_rule(rule, *shapes) == []


def test_unknown_sizes_need_a_function(tmp_path: Path) -> None:
    """What cannot be said by a text is said by the builder."""
    written = stub_rules([op_of("toy.any", [(8, None), (4,)], [(4,)])])
    assert "rule.add_factor([None, 0], [0], op.results[0].type.shape[0])" in written
    load(written, tmp_path / "stub.py")


def test_stubs_of_several_dialects(tmp_path: Path) -> None:
    """Ops of several dialects, with names that are no identifiers, make one plugin."""
    first, second, third = matmul(), matmul(), matmul()
    second.name, third.name = "other-dialect.2d.class", "other-dialect.rule"
    stub = load(stub_rules([first, second, third]), tmp_path / "stub.py")
    names = [definition.name for dialect in stub.shardy_register_dialects() for definition in dialect.definitions]
    assert names == ["toy.matmul", "other-dialect.2d.class", "other-dialect.rule"]


def test_signature() -> None:
    """A signature has the operand types in parentheses, and several results as well."""
    op = matmul()
    op.results = []
    assert signature(op) == "(tensor<8x16xf32>, tensor<16x4xf32>) -> ()"
