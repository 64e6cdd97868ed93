"""Results, sessions and evaluations have short texts in a notebook, without addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.explain.reshards.explain_reshard import ReshardExplainer

TYPE = "tensor<8x8xf32>"
_LAYERS = "\n".join(
    f"""  %m{i} = stablehlo.dot_general %v{i}, %w, contracting_dims = [1] x [0] : ({TYPE}, {TYPE}) -> {TYPE}
  %v{i + 1} = stablehlo.add %m{i}, %v{i} : {TYPE}"""
    for i in range(12)
)
TEXT = f"""sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%v0: {TYPE} {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{"b"}}]>}}, %w: {TYPE}) -> {TYPE} {{
{_LAYERS}
  %c = stablehlo.custom_call @unknown(%v12) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}}"""


def _answers() -> Iterator[Any]:
    result = sdy.propagate(TEXT, trace=True, explicit_collectives=True, record_copies=True)
    yield result
    for name in ("program", "main", "registry", "surveyed", "trace", "given", "summary", "coverage", "explainer"):
        yield getattr(result, name)
    yield from (result.explain("arg0"), result.explain_op("stablehlo.add#1"), result.memory(), result.local())
    session = sdy.Session.open(TEXT)
    evaluation = session.evaluate(machine="cpu-8")
    yield from (session, session.problem, evaluation, evaluation.solution, evaluation.program, evaluation.cost)
    yield sdy.compare_schedules(TEXT, schedules=["default"])
    yield sdy.advise(TEXT, machine="cpu-8", trials=3)
    explainer = ReshardExplainer(TEXT)
    yield from (explainer, explainer.explain(0, limit=1))


@pytest.fixture(scope="module")
def answers() -> list[Any]:
    """What the interface answers about a program of some layers."""
    return list(_answers())


def test_texts_are_short_and_without_addresses(answers: list[Any]) -> None:
    """A notebook shows what a cell ends with; walls of solver internals help nobody."""
    texts = {type(answer).__name__: repr(answer) for answer in answers}
    assert {name: len(text) for name, text in texts.items() if len(text) > 1000} == {}
    assert [name for name, text in texts.items() if " at 0x" in text] == []


def test_an_evaluation_says_what_it_found(answers: list[Any]) -> None:
    """The shardings that were found and the main numbers are in it."""
    (evaluation,) = (answer for answer in answers if type(answer).__name__ == "Evaluation")
    shown = repr(evaluation)
    assert "tensors have a sharding" in shown
    assert "of peak memory" in shown
    assert "@main" in shown
