"""Wishes of tensors that disagree."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

from shardy_py.cost.advice.reshard_candidates import conflicting_shardings
from shardy_py.cost.session import Session
from tests.unit.cost.programs import LAYER


def _wishes(text: str) -> set[tuple[str, int, str]]:
    session = Session.open(text)
    solution = session.solve()
    problem = session.problem
    return {
        (problem.step_ops[item.step].name, problem.step_slots[item.step].index(item.slot), str(item.sharding))
        for item in conflicting_shardings(problem, solution)
    }


def test_an_operand_wishes_its_axes_for_the_result():
    """The product is split by columns, as the sum is; the first operand would have it split by rows."""
    actual = _wishes(LAYER)
    assert ("stablehlo.dot_general", 2, '<@mesh, [{"a"}, {}]>') in actual
    assert ("stablehlo.dot_general", 2, "<@mesh, [{}, {}]>") in actual


def test_tensors_that_agree_wish_nothing():
    """The tensors of the sum have the same axes."""
    assert {name for name, _, _ in _wishes(LAYER)} == {"stablehlo.dot_general"}


@pytest.mark.parametrize(
    ("mesh", "sharding"), [('<["c"=2]>', '[{"c"}, {}]'), ("<[], device_ids=[1]>", "[]")], ids=["other", "one-device"]
)
def test_tensors_on_several_meshes_wish_nothing(mesh, sharding):
    """Nothing propagates between them, and an axis of one mesh is none of the other."""
    text = f"""
    sdy.mesh @mesh = <["a"=2]>
    sdy.mesh @other = {mesh}
    func.func @main(%x: tensor<4x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}}) -> tensor<4x4xf32> {{
      %0 = stablehlo.tanh %x {{sdy.sharding = #sdy.sharding_per_value<[<@other, {sharding}>]>}} : tensor<4x4xf32>
      %1 = stablehlo.add %0, %x : tensor<4x4xf32>
      return %1 : tensor<4x4xf32>
    }}"""
    assert _wishes(text) == set()
