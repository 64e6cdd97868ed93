"""`Result.cost`: counted in the local program, estimated where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jaxlib")

from click.testing import CliRunner

import shardy_py as sdy
from shardy_py.cli.app import shardy
from shardy_py.errors import OptionError

TWO_SUMS = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<7x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<16x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %c: tensor<16x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<7x7xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<7x16xf32>, tensor<16x7xf32>) -> tensor<7x7xf32>
  %1 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0]
      : (tensor<7x16xf32>, tensor<16x7xf32>) -> tensor<7x7xf32>
  %2 = stablehlo.add %0, %1 : tensor<7x7xf32>
  return %2 : tensor<7x7xf32>
}"""
ONE_SUM_SENT = 2 * 3 * (7 * 7 * 4) // 4
WITHOUT_LOCAL_FORM = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %t: !stablehlo.token) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = "stablehlo.outfeed"(%0, %t) : (tensor<8x8xf32>, !stablehlo.token) -> !stablehlo.token
  return %0 : tensor<8x8xf32>
}"""
DYNAMIC = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<?x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<16x8xf32>)
    -> tensor<?x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<?x16xf32>, tensor<16x8xf32>) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}"""
LINKS = """
name = "two links"

[device]
memory_bytes = 1e9
memory_bandwidth = 1e9

[device.flops]
default = 1e9

[[link]]
name = "fast"
size = 4
bandwidth = 1e9

[[link]]
name = "slow"
size = 4
bandwidth = 1e8
"""


def test_collectives_are_counted_after_the_communication_passes() -> None:
    """Two sums are added before they are reduced: the count has one all-reduce, in a session too; the estimate two."""
    result = sdy.propagate(TWO_SUMS)
    cost = result.cost()
    assert (cost.is_counted, cost.counts, cost.communication_bytes.value) == (True, {"all_reduce": 1}, ONE_SUM_SENT)
    assert cost.communication_bytes.how.startswith("counted")
    session = sdy.Session.open(TWO_SUMS)
    counted = session.evaluate().cost
    assert (counted.is_counted, counted.kinds, counted.total_flops) == (True, cost.kinds, cost.total_flops)
    estimate = session.evaluate(partitioner="xla").cost
    assert (estimate.is_counted, estimate.counts) == (False, {"all_reduce": 2})
    assert str(cost).startswith("Cost on one of 8 devices")
    assert str(estimate).startswith("Estimated cost on one of 8 devices")
    (transfer,) = cost.transfers
    assert (transfer.axes, transfer.devices) == ('{"x"}', 4)
    assert transfer.location


def test_the_work_of_the_whole_program_is_known() -> None:
    """The balance compares the work of the program with that of all devices, which do the same along y."""
    cost = sdy.propagate(TWO_SUMS).cost()
    products, additions = 2 * (2 * 16 * 7 * 7), 7 * 7
    assert cost.total_flops.value == products + additions
    assert cost.balance.value is not None
    assert 0 < cost.balance.value < 0.5


def test_a_program_without_a_local_program_is_estimated() -> None:
    """The cost is that of Shardy's explicit reshards, and a note names the op and the reason."""
    session = sdy.Session.open(WITHOUT_LOCAL_FORM)
    for cost in (sdy.propagate(WITHOUT_LOCAL_FORM).cost("cpu-8"), session.evaluate(machine="cpu-8").cost):
        assert (cost.is_counted, cost.counts) == (False, {"all_reduce": 1})
        assert "'stablehlo.outfeed' op: the op acts outside of the program" in cost.notes[-1]
        assert cost.notes[-1].endswith("[side-effects]")


def test_the_command_asks_for_a_size_that_is_not_known(tmp_path: Path) -> None:
    """It is refused as `Result.cost` refuses it, before anything is counted."""
    file = tmp_path / "dynamic.mlir"
    file.write_text(DYNAMIC)
    result = CliRunner().invoke(shardy, ["cost", str(file), "--machine", "cpu-8"])
    assert result.exit_code != 0
    assert "a cost needs a number for dimension 0 of argument arg0" in result.output


def test_the_partitioner_of_xla_is_estimated() -> None:
    """It is the estimate of a session under the profile; another partitioner is an error."""
    result = sdy.propagate(TWO_SUMS)
    cost = result.cost(profile="xla-cpu", partitioner="xla")
    assert not cost.is_counted
    expected = sdy.Session.open(TWO_SUMS).evaluate(profile="xla-cpu", partitioner="xla").cost
    assert cost.communication_bytes.value == expected.communication_bytes.value
    for price in (result.cost, sdy.Session.open(TWO_SUMS).evaluate):
        with pytest.raises(OptionError, match="'gspmd' is not a valid partitioner"):
            price(partitioner="gspmd")  # type: ignore[arg-type]


def test_axes_of_local_programs_run_over_the_links_given(tmp_path: Path) -> None:
    """The time of a collective is that of the link of its axis."""
    machine = tmp_path / "links.toml"
    machine.write_text(LINKS)
    result = sdy.propagate(TWO_SUMS)
    fast, slow = (
        result.cost(machine, axes={"x": [first], "y": [second]}).communication_seconds.value
        for first, second in (("fast", "slow"), ("slow", "fast"))
    )
    assert fast is not None
    assert slow == pytest.approx(10 * fast)
