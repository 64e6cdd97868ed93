"""The numbers of a summary, bytes on one device, and the short texts of results in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardy_py as sdy
from shardy_py.api.main_function import find_main
from shardy_py.api.summary import local_shape, summarize, tensor_bytes
from shardy_py.explain.explain_reshard import ReshardExplainer
from shardy_py.ir.graph.types import OpaqueType, tensor
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding
from tests.unit.api.programs import program, registry


def test_counts() -> None:
    """Each number counts what it says."""
    module = program()
    summary = summarize(module, find_main(module), registry())
    assert (summary.ops, summary.reshards) == (3, 0)
    assert (summary.values, summary.values_with_sharding, summary.values_sharded) == (5, 1, 1)
    assert summary.axes_used == (("a", 1), ("b", 0))
    assert summary.parameters == 2
    assert summary.parameter_bytes == (8 * 16 + 16 * 4) * 4
    assert summary.parameter_bytes_per_device == (4 * 16 + 16 * 4) * 4


MESH = Mesh.of(a=4, b=3)


@given(size=st.integers(1, 100), other=st.integers(1, 100))
def test_shards_cover_the_tensor(size: int, other: int) -> None:
    """The largest shard times the number of shards covers each dimension, and no smaller shard would."""
    sharding = parse_tensor_sharding('<@mesh, [{"a"}, {"b"}]>')
    local = local_shape((size, other), sharding, MESH)
    for full_size, part, count in zip((size, other), local, (4, 3), strict=True):
        assert part * count >= full_size > (part - 1) * count


def test_bytes_are_rounded_up_once() -> None:
    """Sub-byte elements are packed: bits are added up before they become bytes."""
    assert tensor_bytes(tensor(3, 3, dtype="i4")) == 5
    assert tensor_bytes(tensor(6, 3, dtype="i4"), parse_tensor_sharding('<@mesh, [{"a"}, {}]>'), MESH) == 3


@pytest.mark.parametrize("type_", [OpaqueType("!stablehlo.token"), tensor(None, 2), tensor(2, dtype="!toy.t")])
def test_unknown_sizes(type_: object) -> None:
    """A type whose size is not known has no number of bytes."""
    assert tensor_bytes(type_) is None  # type: ignore[arg-type]


def test_a_single_device_holds_all_of_a_tensor() -> None:
    """A sharding over one device has no dimensions, and divides nothing."""
    sharding, mesh = parse_tensor_sharding("<@one, []>"), Mesh(device_ids=(3,))
    assert tensor_bytes(tensor(8, 4), sharding, mesh) == 128


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
