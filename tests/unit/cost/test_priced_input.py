"""Texts that JAX wrote are priced as `jax.jit` propagates them, where XLA's partitioner is priced."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

import shardy_py as sdy
from shardy_py.api.options import ProgramInput
from shardy_py.cost.priced_input import PRICED_LIKE_JIT, is_priced_like_jit, priced_input

T = "tensor<16x16xf32>"
# chlo.square has no rule, so that as the module is its operand is gathered; jit has a product in its place.
BODY = f"""
  sdy.mesh @mesh = <["x"=8]>
  func.func public @main(%a: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {T} {{
    %0 = chlo.square %a : {T} -> {T}
    return %0 : {T}
  }}
}}
"""
HEAD = "module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {"
OF_JAX = HEAD + BODY
OF_OTHERS = "module @f attributes {mhlo.num_partitions = 8 : i32} {" + BODY


def sent(text: str, **options: str) -> tuple[float | None, tuple[str, ...]]:
    """Return the bytes that a device of eight on one host sends, with the notes."""
    cost = sdy.Session.open(text, like=options.pop("like", None)).evaluate(**options, partitioner="xla").cost
    return cost.communication_bytes.value, cost.notes


def test_text_of_jax_is_priced_like_jit() -> None:
    """With a profile of XLA nothing is gathered for a square, and the cost says in which form it was priced."""
    for options in ({"machine": "cpu-8"}, {"profile": "xla-cpu"}):
        assert sent(OF_JAX, **options) == (0, (PRICED_LIKE_JIT,))
    assert sent(OF_JAX, machine="cpu-8", like="jit") == (0, ())


def test_the_form_of_jit_is_estimated_like_any_other() -> None:
    """For XLA's partitioner nothing is counted in a local program, in whatever form the program is priced."""
    cost = sdy.Session.open(OF_JAX).evaluate(machine="cpu-8", partitioner="xla").cost
    like_jit = sdy.Session.open(OF_JAX, like="jit").evaluate(machine="cpu-8", partitioner="xla").cost
    assert cost.communication_bytes == like_jit.communication_bytes
    assert "counted" not in cost.communication_bytes.how
    assert sdy.Session.open(OF_JAX).evaluate(machine="cpu-8").cost == cost


def test_other_texts_are_counted_by_default() -> None:
    """What JAX did not write, and what is priced without a profile of XLA, runs as a local program."""
    for text, machine in ((OF_OTHERS, "cpu-8"), (OF_JAX, None)):
        cost = sdy.Session.open(text).evaluate(machine=machine).cost
        assert cost.communication_bytes.how.startswith("counted")


@pytest.mark.parametrize("text", [OF_JAX, OF_OTHERS])
def test_all_else_is_priced_as_it_is(text: str) -> None:
    """What the caller asks for holds, and so does the default of texts that JAX did not write."""
    program_input = ProgramInput(text, like="passes" if text is OF_JAX else None)
    assert priced_input(program_input, "cpu-8") is program_input
    bytes_, notes = sent(text, machine="cpu-8", like="passes")
    assert bytes_
    assert PRICED_LIKE_JIT not in notes
    assert not is_priced_like_jit(ProgramInput(OF_JAX), None)


def test_propagation_of_such_a_text_stays_as_it_is(tmp_path: Path) -> None:
    """The session solves the module itself, and so does `propagate`."""
    path = tmp_path / "f.mlir"
    path.write_text(OF_JAX, encoding="utf-8")
    assert is_priced_like_jit(ProgramInput(path), "cpu-8")
    assert is_priced_like_jit(ProgramInput(OF_JAX.encode()), "cpu-8")
    session = sdy.Session.open(path)
    assert session.like == "passes"
    assert "chlo.square" in sdy.propagate(path).text
    assert any(op.name == "chlo.square" for op in session.program.walk())


def test_orders_are_compared_by_the_same_price() -> None:
    """A comparison prices the form that a cost does."""
    rows = sdy.compare_schedules(OF_JAX, ["default", "flat"], machine="cpu-8").rows
    assert [row.communication_bytes for row in rows] == [0] * len(rows)
