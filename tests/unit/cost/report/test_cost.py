"""Costs as tables and as JSON."""

import io
import json
import re

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")
pytest.importorskip("rich", reason="tables need the extra 'cli'")

from shardy_py.cost.report.cost import cost_json, print_cost
from shardy_py.cost.session import Session

TEXT = """
sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>},
                %w: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.dot %x, %w : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def _printed(cost, **options):
    file = io.StringIO()
    print_cost(cost, file=file, **options)
    return file.getvalue()


def test_transfers_stand_by_kind_and_by_time():
    """An all-reduce of 128 bytes over four devices sends 192 of them."""
    text = _printed(Session.open(TEXT).evaluate(machine="cpu-8", partitioner="xla").cost)
    (line,) = [line.split() for line in text.splitlines() if "tensor<8x4xf32>" in line]
    assert line[:7] == ["all_reduce", "tensor<8x4xf32>", '{"a"}', "4", "1", "192", "B"]


def test_without_a_machine_times_are_unknown():
    """What is not known is not printed as nothing."""
    text = _printed(Session.open(TEXT).evaluate(partitioner="xla").cost, top=0)
    assert re.search("unknown +no machine was given", text)
    assert "Transfers that take longest" not in text


def test_json_lists_transfers_on_request():
    """By default there are the kinds only."""
    cost = Session.open(TEXT).evaluate(machine="cpu-8", partitioner="xla").cost
    assert "transfers" not in json.loads(cost_json(cost))
    assert json.loads(cost_json(cost, transfers=True))["transfers"][0]["bytes"] == 192
