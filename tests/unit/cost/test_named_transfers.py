"""Transfers of a cost, and the communications that they come from."""

from __future__ import annotations

import io
from types import ModuleType

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

import shardy_py as sdy
from shardy_py.cost.communications import name_transfers
from shardy_py.cost.report.cost import print_cost
from shardy_py.cost.session import Session
from shardy_py.explain.explain_reshard import ReshardExplainer
from tests.unit.cost.programs import LAYER

SCATTERED = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>} loc("x"),
                %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
        tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("/home/user/model.py":3:1)
  return %0, %arg0 : tensor<8x4xf32>, tensor<8x16xf32>
}
"""
"""A product that is summed and scattered, and an operand that is gathered for a result."""


@pytest.mark.parametrize("schedule", ["default", "contractions-first", "flat"])
@pytest.mark.parametrize("text", [LAYER, SCATTERED])
def test_a_transfer_has_the_number_that_explains_it(text: str, schedule: str) -> None:
    """Every transfer has one; the communication of that number moves the same tensor, for the same op."""
    given_schedule = None if schedule == "default" else schedule
    session = Session.open(text, keep_names=True)
    transfers = name_transfers(session, session.evaluate(given_schedule, partitioner="xla")).transfers
    lines = ReshardExplainer(text, schedule=given_schedule).lines()
    assert transfers
    for item in transfers:
        line = lines[item.number]
        assert (item.value, item.where, item.location) == (line.value, line.where, line.location)
        assert ("reduce" in item.kind) == ("reduce" in line.kind)


def test_a_reduce_scatter_has_the_number_of_its_all_reduce() -> None:
    """The reshard behind the all-reduce is a part of it; the report names tensor, op and place."""
    session = Session.open(SCATTERED, keep_names=True)
    cost = name_transfers(session, session.evaluate("contractions-first", partitioner="xla"))
    (single,) = [item for item in cost.transfers if item.kind == "reduce_scatter"]
    assert ReshardExplainer(SCATTERED, schedule="contractions-first").lines()[single.number].kind == "sdy.all_reduce"
    stream = io.StringIO()
    print_cost(cost, file=stream)
    assert f"  {single.number}: %0, result of stablehlo.dot_general %0 at model.py:3:1\n" in stream.getvalue()


def test_numbers_are_data_too() -> None:
    """JSON has them with the other fields of a transfer."""
    session = Session.open(SCATTERED, keep_names=True)
    data = name_transfers(session, session.evaluate(partitioner="xla")).to_json(transfers=True)["transfers"]
    assert all(item["number"] >= 0 and item["value"] for item in data)


CHAIN = """sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                %w: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})
    -> (tensor<8x32xf32>, tensor<8x64xf32>) {
  %0 = "k.fft"(%x) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %1 = "k.mm"(%0, %w) : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  %2 = stablehlo.tanh %0 : tensor<8x64xf32>
  return %1, %2 : tensor<8x32xf32>, tensor<8x64xf32>
}
"""
"""A result that is resharded for all of its users, and once more for one of them."""


def test_each_link_of_a_chain_has_its_own_number() -> None:
    """The second reshard of a tensor is for its one user, though the first one serves that, too."""
    dialect = sdy.Dialect("k")
    dialect.op("k.fft", rule="i n -> i n", need_replication="n", traits=[sdy.Pure])
    dialect.op("k.mm", rule="i k, k j -> i j", reduction="k", traits=[sdy.Pure])
    plugin = ModuleType("k")
    plugin.__dict__["shardy_register_dialects"] = sdy.hookimpl(specname="shardy_register_dialects")(lambda: [dialect])
    registry = sdy.Registry.from_entry_points(plugins=[plugin])
    session = Session.open(CHAIN, registry=registry, keep_names=True)
    transfers = name_transfers(session, session.evaluate(partitioner="xla")).transfers
    gathered = {item.where for item in transfers if item.kind == "all_gather"}
    exchanged = {item.where for item in transfers if item.kind == "all_to_all" and item.value == "%0"}
    assert gathered == {"operand 0 of k.mm %1"}
    assert exchanged == {"result of k.fft %0"}
