"""What programs cost, against numbers worked out by hand."""

import json
import re

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_py.cost.machines.machine import Link, Machine
from shardy_py.cost.session import Session
from shardy_py.errors import OptionError
from shardy_py.plugins import CostOpInterface, Dialect, IsTerminator, LoopDataFlow, Registry, hookimpl

MACHINE = Machine(
    "test",
    (Link("a", 2, 10.0, 0.0, "all-to-all"), Link("b", 4, 20.0, 0.0, "all-to-all")),
    {"f32": 100.0, "default": 50.0},
    10**6,
    8.0,
)
MESH = 'sdy.mesh @mesh = <["a"=2, "b"=4]>\n'


def _cost(body, machine=MACHINE, **options):
    return Session.open(MESH + body).evaluate(machine=machine, **options, partitioner="xla").cost


def _value(quantity):
    return quantity.value


MATMUL = """
func.func @main(%x: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
                %w: tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
    -> (tensor<6x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<6x8xf32>, tensor<8x5xf32>) -> tensor<6x5xf32>
  return %0 : tensor<6x5xf32>
}
"""


def test_a_product_that_sums_over_a_sharded_dimension():
    """A device multiplies 3x2 by 2x5, and reduces its 3x5 sums over four devices."""
    cost = _cost(MATMUL)
    assert cost.counts == {"all_reduce": 1}
    # The all-reduce adds each of the sums once.
    assert _value(cost.flops) == 2 * 3 * 2 * 5 + 3 * 5
    assert _value(cost.total_flops) == 2 * 6 * 8 * 5
    assert _value(cost.balance) == 1.0
    assert _value(cost.argument_bytes) == 4 * (3 * 2 + 2 * 5)
    assert _value(cost.result_bytes) == 4 * 3 * 5
    assert _value(cost.communication_bytes) == 2 * 3 / 4 * 60
    assert _value(cost.communication_seconds) == pytest.approx(2 * 3 * (60 / 4) / 20)
    moved = 4 * (3 * 2 + 2 * 5 + 3 * 5)
    assert _value(cost.memory_traffic_bytes) == moved + 2 * 4 * 3 * 5
    assert _value(cost.compute_seconds) == max(60 / 100, moved / 8)
    assert _value(cost.seconds) == pytest.approx(_value(cost.compute_seconds) + _value(cost.communication_seconds))
    # The arguments, the sums, and what the all-reduce makes of them.
    assert _value(cost.peak_bytes) == 4 * (3 * 2 + 2 * 5 + 3 * 5 + 3 * 5)
    assert cost.devices == 8
    assert cost.machine == "test"


def test_a_dimension_that_does_not_divide_counts_rounded_up():
    """Of 5 rows over 4 devices the largest part has 2, so the devices together compute 8."""
    cost = _cost("""
func.func @main(%x: tensor<5x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<5x3xf32> {
  %0 = sdy.sharding_constraint %x <@mesh, [{"b"}, {}]> : tensor<5x3xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>} : tensor<5x3xf32>
  return %1 : tensor<5x3xf32>
}
""")
    assert _value(cost.flops) == 2 * 3
    assert _value(cost.total_flops) == 5 * 3
    assert _value(cost.balance) == pytest.approx(15 / (8 * 6))


LOOP = """
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<8x4xf32>
  cond {
    %n = stablehlo.constant dense<N> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %s = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%y init: %s) applies stablehlo.add across dimensions = [0]
      : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    %b = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
    %z = stablehlo.add %y, %b : tensor<8x4xf32>
    stablehlo.return %j, %z : tensor<i32>, tensor<8x4xf32>
  }
  return %0#1 : tensor<8x4xf32>
}
"""


def test_a_loop_counts_as_often_as_it_runs():
    """The all-reduce of 16 bytes stands once in the program and runs five times."""
    cost = _cost(LOOP.replace("N", "5"))
    (kind,) = cost.kinds
    assert (kind.kind, kind.count, kind.runs) == ("all_reduce", 1, 5)
    assert kind.bytes == 5 * 2 * 3 / 4 * 16
    # A row is added to another one, the sums of all devices, an addition of 2x4 and one to the counter in each run;
    # six comparisons.
    assert _value(cost.flops) == 5 * (4 + 4 + 8 + 1) + 6
    assert cost.notes == ()


def test_a_loop_of_unknown_length_counts_once_and_says_so():
    """The bound is an argument of the program here."""
    text = LOOP.replace("@main(", "@main(%n: tensor<i32>, ").replace(
        "%n = stablehlo.constant dense<N> : tensor<i32>", ""
    )
    cost = _cost(text)
    (kind,) = cost.kinds
    assert kind.runs == 1
    (note,) = cost.notes
    assert note.startswith("how often stablehlo.while")
    assert note.endswith("is not known: counted once")


def test_a_branch_counts_by_the_number_of_branches():
    """Each of two branches counts as taken every other time."""
    cost = _cost("""
func.func @main(%i: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
""")
    assert _value(cost.flops) == 4 / 2


def test_a_function_counts_for_each_call():
    """What a function does is done as often as it is called, directly and through others."""
    cost = _cost("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @once(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @once(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @once(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @once(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
""")
    assert _value(cost.flops) == 3 * 4


def test_a_manual_computation_counts_for_each_group_of_devices():
    """In the body a device works on its own part; the whole program does so once for each group."""
    cost = _cost("""
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>]
      manual_axes={"a"} (%y: tensor<4x4xf32>) {
    %1 = stablehlo.negate %y : tensor<4x4xf32>
    sdy.return %1 : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
""")
    assert _value(cost.flops) == 16
    assert _value(cost.total_flops) == 32


def test_values_between_elementwise_ops_take_no_memory():
    """Only the argument is read and only the last result written; between them nothing is stored."""
    cost = _cost("""
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.exponential %x : tensor<4x8xf32>
  %1 = stablehlo.negate %0 : tensor<4x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
""")
    assert _value(cost.memory_traffic_bytes) == _value(cost.peak_bytes) == 2 * 128


def test_values_that_live_at_a_time_add_up():
    """Two products of 64 bytes live when the third is made; the first argument is kept."""
    cost = _cost("""
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.dot %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.dot %1, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
""")
    assert _value(cost.peak_bytes) == 3 * 64


def test_a_donated_argument_gives_its_memory_to_the_result():
    """The arguments are there once, where their memory becomes that of the results."""
    text = """
func.func @main(%x: tensor<4x4xf32> {ATTRIBUTES}) -> tensor<4x4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
"""
    assert _value(_cost(text.replace("{ATTRIBUTES}", "")).peak_bytes) == 128
    assert _value(_cost(text.replace("ATTRIBUTES", "tf.aliasing_output = 0 : i32")).peak_bytes) == 64


def test_a_layout_policy_pads():
    """With the layouts of a TPU a shard of 3x2 numbers takes a tile of 4x128."""
    cost = _cost(MATMUL, layout="tpu-v5e")
    assert cost.layout == "tpu-v5e"
    assert _value(cost.result_bytes) > _value(_cost(MATMUL).result_bytes)
    assert "tpu-v5e" in cost.argument_bytes.how


def test_without_a_machine_there_are_counts_and_bytes_but_no_times():
    """Every time is unknown and says why."""
    cost = _cost(MATMUL, machine=None)
    assert cost.machine is None
    assert [name for name, item in cost.quantities.items() if item.value is None] == [
        "seconds",
        "compute_seconds",
        "communication_seconds",
    ]
    assert {item.how for item in cost.quantities.values() if item.value is None} == {"no machine was given"}
    assert cost.kinds[0].seconds is None
    assert _value(cost.communication_bytes) == 90


def test_every_number_says_how_it_was_obtained():
    """There is no quantity and no transfer without a sentence."""
    cost = _cost(MATMUL)
    assert all(item.how for item in cost.quantities.values())
    assert all(item.how for item in (*cost.kinds, *cost.transfers))


def test_the_json_form_is_plain_data():
    """It survives a round trip, with units and how each number was obtained."""
    data = _cost(MATMUL).to_json(transfers=True)
    assert json.loads(json.dumps(data)) == data
    assert data["flops"] == {"value": 75, "unit": "FLOP", "how": data["flops"]["how"]}
    assert data["collectives"][0]["kind"] == data["transfers"][0]["kind"] == "all_reduce"
    assert data["transfers"][0]["axes"] == '{"b"}'


def test_a_mesh_that_does_not_fit_is_an_error():
    """The machine is too small for the mesh."""
    small = Machine("small", (Link("a", 2, 1.0),), {"default": 1.0}, 1, 1.0)
    with pytest.raises(OptionError, match="has 8 devices, the machine 'small' has 2"):
        _cost(MATMUL, machine=small)


def test_an_op_without_a_rule_is_noted():
    """Its operations are unknown and count as none; its operands and results are moved all the same."""
    cost = _cost("""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "toy.mystery"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
""")
    assert _value(cost.flops) == 0
    assert _value(cost.memory_traffic_bytes) == 32
    assert cost.notes == ("no operations are counted for ops without a rule: toy.mystery (1)",)


def test_what_a_loop_only_reads_is_not_copied():
    """Of the two carried values only the one that changes needs memory of its own besides the arguments."""
    cost = _cost("""
func.func @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0:2 = stablehlo.while(%y = %x, %v = %w) : tensor<4x4xf32>, tensor<4x4xf32>
  cond {
    %p = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %z = stablehlo.dot %y, %v : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    stablehlo.return %z, %v : tensor<4x4xf32>, tensor<4x4xf32>
  }
  return %0#0 : tensor<4x4xf32>
}
""")
    # Both arguments, the carried value, and the product before it takes its place.
    assert _value(cost.peak_bytes) == 4 * 64


SCF = """
func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %lower = arith.constant 1 : index
  %upper = arith.constant 8 : index
  %step = arith.constant 3 : index
  %0 = scf.for %i = %lower to UPPER step %step iter_args(%y = %x) -> tensor<4xf32> {
    %z = math.exp %y : tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
"""


def test_a_loop_of_another_dialect_counts_as_its_bounds_say():
    """From 1 up to 8 by steps of 3 it runs three times; up to an argument it counts once, with a note."""
    known, unknown = _cost(SCF.replace("UPPER", "%upper")), _cost(SCF.replace("UPPER", "%n"))
    assert (_value(known.flops), known.notes) == (3 * 4, ())
    assert _value(unknown.flops) == 4
    assert unknown.notes[0].startswith("how often scf.for")


def test_a_loop_whose_dialect_says_nothing_of_its_cost_counts_once_and_says_so():
    """Its data flow shows that it is a loop, but not how often it runs."""
    toy = Dialect("toy")
    toy.op("toy.loop", data_flow=LoopDataFlow())
    toy.op("toy.yield", traits=[IsTerminator])
    registry = Registry.from_entry_points(plugins=[_Plugin(toy)])
    text = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "toy.loop"(%x) ({
  ^bb0(%y: tensor<4xf32>):
    %z = stablehlo.negate %y : tensor<4xf32>
    "toy.yield"(%z) : (tensor<4xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
    cost = Session.open(text, registry=registry).evaluate(partitioner="xla").cost
    assert _value(cost.flops) == 4
    assert cost.notes[0].startswith("how often toy.loop")


class _Plugin:
    """A plugin with one dialect."""

    __name__ = "toy_plugin"

    def __init__(self, dialect):
        self._dialect = dialect

    @hookimpl
    def shardy_register_dialects(self):
        """Return the dialect."""
        return [self._dialect]


class _Flops(CostOpInterface):
    def get_flops(self, op):
        """Return a number that no rule gives."""
        return 1000


def test_what_a_dialect_says_of_an_op_comes_first():
    """The operations are those of the whole op; a device does the part that its rows are."""
    toy = Dialect("toy")
    toy.op("toy.solve", rule="i j -> i j", cost=_Flops())
    registry = Registry.from_entry_points(plugins=[_Plugin(toy)])
    text = """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> tensor<8x5xf32> {
  %0 = "toy.solve"(%x) : (tensor<8x5xf32>) -> tensor<8x5xf32>
  return %0 : tensor<8x5xf32>
}
"""
    cost = Session.open(text, registry=registry).evaluate(partitioner="xla").cost
    assert (_value(cost.total_flops), _value(cost.flops)) == (1000, 250)


def test_a_product_of_any_dialect_is_told_from_reductions_by_its_rule():
    """A product needs two operands for one sum, a reduction of two tensors one for each of its two results."""
    toy = Dialect("toy")
    toy.op("toy.generic", rule="i k, k j -> i j", reduction=("k",))
    text = """
func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x5xf32>) -> tensor<2x5xf32> {
  %0 = "toy.generic"(%x, %w) ({
  ^bb0(%p: f32, %q: f32):
    "toy.yield"(%q) : (f32) -> ()
  }) : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}
"""
    registry = Registry.from_entry_points(plugins=[_Plugin(toy)])
    assert _value(Session.open(text, registry=registry).evaluate(partitioner="xla").cost.flops) == 2 * 2 * 3 * 5
    reduction = _cost("""
func.func @main(%x: tensor<6x4xf32>, %i: tensor<6x4xi32>, %a: tensor<f32>, %b: tensor<i32>)
    -> (tensor<4xf32>, tensor<4xi32>) {
  %0:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [0]
      : (tensor<6x4xf32>, tensor<6x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%k: tensor<i32>, %l: tensor<i32>) {
      %s = stablehlo.add %p, %q : tensor<f32>
      %t = stablehlo.maximum %k, %l : tensor<i32>
      stablehlo.return %s, %t : tensor<f32>, tensor<i32>
    }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}
""")
    # Two operations for each of the five rows that disappear.
    assert _value(reduction.flops) == 2 * 5 * 4


def test_a_collective_of_the_program_counts_with_the_devices_it_names():
    """Devices 0 to 3 stand along the second link: each sends 2 * 3 / 4 of 16 bytes at 20 bytes per second."""
    cost = _cost("""
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>]
      manual_axes={"a", "b"} (%y: tensor<4x1xf32>) {
    %1 = "stablehlo.all_reduce"(%y) <{replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x1xf32>) -> tensor<4x1xf32>
    sdy.return %1 : tensor<4x1xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
""")
    (actual,) = [item for item in cost.transfers if item.kind == "all_reduce"]
    assert (actual.devices, actual.bytes) == (4, 24)
    assert actual.seconds == pytest.approx(24 / 20)
    # What it sends is read and written meanwhile.
    assert [item.seconds for item in cost.ops if item.name == "stablehlo.all_reduce"] == [0]


def test_a_kernel_that_ends_in_a_slice_takes_time():
    """Each device reads the quarter that it keeps of 8x3 numbers and writes it: 48 bytes, 8 per second."""
    cost = _cost("""
func.func @main(%x: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) {
  return %x : tensor<8x3xf32>
}
""")
    assert [item.kind for item in cost.transfers] == ["all_slice"]
    assert _value(cost.communication_seconds) == 0
    assert _value(cost.compute_seconds) == 2 * 4 * 2 * 3 / 8


@pytest.mark.parametrize(("profile", "copies"), [("none", 0), ("xla-cpu", 2)])
def test_a_collective_takes_the_time_of_the_copies_that_are_made_for_it(profile, copies):
    """A gather along an inner dimension is made in another layout: shard and result are read and written once more."""
    cost = _cost(
        """
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})
    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  return %x : tensor<8x4xf32>
}
""",
        profile=profile,
    )
    assert cost.counts == {"all_gather": 1}
    assert _value(cost.compute_seconds) == copies * 4 * (8 * 1 + 8 * 4) / 8


def test_a_value_on_a_single_device_is_sent_there():
    """A sharding over one device has no dimensions; the reshard to it goes over all devices of the other mesh."""
    cost = _cost("""
sdy.mesh @one = <[], device_ids=[0]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> tensor<8x4xf32> {
  %0 = sdy.reshard %x <@one, []> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
""")
    (actual,) = cost.transfers
    assert (actual.kind, actual.devices, actual.bytes) == ("reshard", 8, 128)


def test_a_cost_has_a_short_text():
    """The main numbers with units, the transfers by kind; without a machine there are no times."""
    text = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""
    session = Session.open(text)
    lines = [line.split("  ") for line in str(session.evaluate(partitioner="xla").cost).splitlines()]
    assert lines[0] == ["Estimated cost on one of 4 devices, no machine"]
    rows = {parts[1] or parts[2]: parts[-1] for parts in lines[1:]}
    assert list(rows) == ["bytes sent", "all_reduce", "operations", "bytes read and written", "peak memory"]
    assert rows["all_reduce"] == "1"
    assert rows["bytes sent"] == "768 B"
    timed = str(session.evaluate(machine=MACHINE, partitioner="xla").cost)
    assert re.search(r"\n  estimated time +\S+ [um]?s\n    computing +\S+ \S+\n    communicating +\S+ \S+\n", timed)
