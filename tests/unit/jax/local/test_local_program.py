"""Local programs: their interface, and what is refused."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="programs run through XLA")

import shardy_py as sdy
from shardy_py.errors import OptionError, ShardyError, UnsupportedError
from shardy_py.jax.arguments import ArrayType
from shardy_py.jax.local.port import Port
from shardy_py.jax.running import run_result
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding

TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[2, 0, 3, 1]>
func.func @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<6x4xf32> {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}
"""


SUMMED = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}, {}]> : tensor<8x4xf32>
  %2 = stablehlo.sine %1 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
"""


def port(sharding: str, *shape: int) -> Port:
    """Return a port over two by two devices in another order."""
    mesh = Mesh.of(x=2, y=2)
    mesh = Mesh(mesh.axes, (2, 0, 3, 1))
    parsed = parse_tensor_sharding(sharding)
    local = parsed.local_shape(shape, mesh)
    return Port(ArrayType(shape, np.dtype("float32")), tuple(size or 0 for size in local), parsed, mesh)


def test_a_local_program_takes_and_gives_global_arrays() -> None:
    """Shards are made of the arguments and joined to the results, in the order of the mesh's devices."""
    local = sdy.propagate(TEXT, explicit_collectives=True).local()
    assert local.device_count == 4
    assert [item.shard_shape for item in (*local.arguments, *local.results)] == [(2, 3), (3, 2)]
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    (actual,) = local.run(array)
    np.testing.assert_array_equal(actual, array.T)


DECLARED = """
sdy.mesh @mesh = <["x"=2]>
func.func private @given(tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %i: tensor<i32>) -> tensor<8xf32> {
  %0 = call @given(%a, %i) : (tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def test_a_declared_function_keeps_its_type() -> None:
    """Its calls have whole operands and results, and cost what they move; a main function needs a body."""
    local = sdy.propagate(DECLARED, local=True).local()
    assert "func.func private @given(tensor<8xf32>, tensor<i32>) -> tensor<8xf32>" in local.text
    session = sdy.Session.open(DECLARED)
    assert session.price(session.solve()).cost.counts["all_gather"] == 1
    main = "func.func private @main(tensor<8xf32>) -> tensor<8xf32>"
    for use in (lambda: sdy.propagate(main).local(), lambda: sdy.propagate(main).cost()):
        with pytest.raises(UnsupportedError, match="the function @main has no body"):
            use()


def test_the_result_stays_as_it_is() -> None:
    """A local program is made of a copy of the module."""
    result = sdy.propagate(TEXT, explicit_collectives=True)
    before = result.text
    result.local()
    assert str(result.module) == str(before) or result.text == before
    assert "tensor<2x3xf32>" not in str(result.module)


@pytest.mark.parametrize("text", [TEXT, SUMMED])
def test_a_local_program_needs_no_promise(text: str) -> None:
    """Collectives that the propagated module leaves to a partitioner are made, the same as with ``local=True``."""
    result = sdy.propagate(text)
    assert not result.has_explicit_collectives
    assert result.local().text == sdy.propagate(text, local=True).local().text


def test_strict_programs_gather_nothing() -> None:
    """Where an op has no local form, a strict program is an error that names it."""
    text = TEXT.replace("transpose %a, dims = [1, 0]", "custom_call @own(%a)")
    result = sdy.propagate(text, explicit_collectives=True)
    assert [warning.op for warning in result.local().warnings] == ["stablehlo.custom_call"]
    with pytest.raises(ShardyError, match=r"stablehlo\.custom_call"):
        result.local(strict=True)


def test_shards_join_to_the_array_they_were_cut_from() -> None:
    """Joining undoes cutting, whichever axes cut which dimensions."""
    array = np.arange(32, dtype=np.float32).reshape(4, 8)
    for text in ('<@m, [{"x"}, {"y"}]>', '<@m, [{"y", "x"}, {}]>', '<@m, [{}, {"y"}]>', "<@m, [{}, {}]>"):
        item = port(text, 4, 8)
        np.testing.assert_array_equal(item.join(item.split(array, 4, 0), 0), array)


def test_padding_is_no_part_of_an_array() -> None:
    """Arrays that do not divide are cut and joined, too, and what padding holds does not matter."""
    array = np.arange(35, dtype=np.float32).reshape(5, 7)
    for text in ('<@m, [{"x"}, {"y"}]>', '<@m, [{"y", "x"}, {}]>', '<@m, [{}, {"y", "x"}]>'):
        item = port(text, 5, 7)
        shards = item.split(array, 4, 0)
        for device, part in enumerate(item.parts(4)):
            shards[device, array[part].shape[0] :] = np.nan
            shards[device, :, array[part].shape[1] :] = device
        np.testing.assert_array_equal(item.join(shards, 0), array)


def test_devices_with_the_same_part_must_agree() -> None:
    """A difference between replicas is an error and not one of the two values."""
    item = port('<@m, [{"x"}, {}]>', 4, 8)
    shards = item.split(np.zeros((4, 8), np.float32), 4, 0)
    shards[1, 0, 0] = 1
    with pytest.raises(UnsupportedError, match="result 0 differs between devices 1 and 3"):
        item.join(shards, 0)


def test_arguments_are_checked() -> None:
    """Arrays of another shape, and too few of them, are refused before anything runs."""
    local = sdy.propagate(TEXT, explicit_collectives=True).local()
    with pytest.raises(OptionError, match="argument 0 is float32"):
        local.run(np.zeros((2, 3), np.float32))
    with pytest.raises(OptionError, match="has 1 arguments, given are 0"):
        local.run()


@pytest.mark.usefixtures("one_process")
def test_side_effects_happen_once() -> None:
    """A call with a side effect runs on the first device, on the whole operand; the others get its results."""
    call = "stablehlo.custom_call @print(%a) {has_side_effect = true} : (tensor<4x6xf32>) -> tensor<4x6xf32>"
    text = TEXT.replace("  %0 = stablehlo.transpose %a", f"  %1 = {call}\n  %0 = stablehlo.transpose %1")
    for options in ({}, {"explicit_collectives": True}):
        local = sdy.propagate(text, **options).local()
        assert "@print(" in local.text.partition('"stablehlo.if"')[2].partition("}, {")[0]
        assert [item.kind for item in local.collectives][-1] == "all_reduce"
    with_token = TEXT.replace("%a: tensor<4x6xf32>", "%t: !stablehlo.token, %a: tensor<4x6xf32>")
    with pytest.raises(UnsupportedError, match="takes or gives a token"):
        sdy.propagate(with_token).local().run(np.zeros((4, 6), np.float32))


def test_queues_of_data_are_refused() -> None:
    """What waits for data from outside would do so on each device."""
    infeed = """%t = stablehlo.create_token : !stablehlo.token
  %1:2 = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<4x6xf32>, !stablehlo.token)
  %0 ="""
    result = sdy.propagate(TEXT.replace("%0 =", infeed, 1))
    with pytest.raises(UnsupportedError, match="side-effects"):
        result.local()
    steps: list[str] = []
    with pytest.raises(UnsupportedError, match="waits-for-ever"):
        run_result(result, on_step=steps.append)
    assert steps == ["Compiling in XLA"]


def test_calls_into_python_are_refused_before_a_run(tmp_path) -> None:
    """A callback is a function of another process: the run names its op and place, and the text stays at hand."""
    path = tmp_path / "callback.mlir"
    call = "stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) : (tensor<4x6xf32>) -> tensor<4x6xf32>"
    path.write_text(TEXT.replace("%0 = stablehlo.transpose %a", f"%1 = {call}\n  %0 = stablehlo.transpose %1"))
    local = sdy.propagate(path, explicit_collectives=True).local()
    assert "xla_ffi_python_cpu_callback" in local.text
    with pytest.raises(UnsupportedError, match="python-callback") as caught:
        local.run(np.zeros((4, 6), np.float32))
    (problem,) = caught.value.diagnostics
    assert (problem.op, problem.location) == ("stablehlo.custom_call", f"{path}:4:8")
    assert "jax.pure_callback" in problem.hint


def test_too_many_devices_are_refused() -> None:
    """Each device has an entry in tables and groups, so that a mesh of 10**18 devices would never end."""
    text = """
    sdy.mesh @mesh = <["a"=1000000000000000000]>
    func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
      %0 = stablehlo.negate %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    with pytest.raises(UnsupportedError, match="lists its devices, and there are 1000000000000000000"):
        sdy.propagate(text, local=True).local()


@pytest.mark.usefixtures("one_process")
def test_the_number_of_the_only_replica_is_zero() -> None:
    """A program over partitions has one replica, although each device runs as a replica here."""
    text = TEXT.replace("-> tensor<6x4xf32> {", "-> (tensor<6x4xf32>, tensor<ui32>) {", 1)
    returned = "  %1 = stablehlo.replica_id : tensor<ui32>\n  return %0, %1 : tensor<6x4xf32>, tensor<ui32>"
    text = text.replace("  return %0 : tensor<6x4xf32>", returned)
    local = sdy.propagate(text, explicit_collectives=True).local()
    assert local.run(np.zeros((4, 6), np.float32))[1] == 0


@pytest.mark.usefixtures("one_process")
def test_a_barrier_hands_on_what_it_gets() -> None:
    """A propagation barrier between two shardings is resharded, with a warning."""
    text = TEXT.replace(
        "  %0 =", "  %1 = sdy.propagation_barrier %a allowed_direction=BACKWARD : tensor<4x6xf32>\n  %0 ="
    ).replace("transpose %a", "transpose %1")
    local = sdy.propagate(text, explicit_collectives=True).local()
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(local.run(array)[0], array.T)


WHOLE = TEXT.replace("-> tensor<6x4xf32> {", "-> (tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {")
"""The program with a result that is not sharded."""
COUNTED = """
sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[2, 0, 3, 1]>
func.func @main(%a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<4x6xf32> {
  %0 = stablehlo.iota dim = 1 : tensor<4x6xf32>
  %1 = stablehlo.add %a, %0 : tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}
"""


@pytest.mark.usefixtures("one_process")
def test_the_program_of_a_device_runs_alone() -> None:
    """With its number folded in, and nothing to communicate, a device's module gives its part of the results."""
    from shardy_py.jax.local.child import run_whole

    local = sdy.propagate(COUNTED, local=True).local()
    array = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    expected = array + np.arange(6, dtype=np.float32)
    shards = local.arguments[0].split(array, 4, 0)
    for device, part in enumerate(local.results[0].parts(4)):
        module = local.per_device(device)
        assert "partition_id" not in str(module)
        (actual,) = run_whole(module, [shards[device]])
        np.testing.assert_array_equal(actual, expected[part])


def test_devices_are_numbered_from_zero() -> None:
    """There is no module for a device that the mesh does not have."""
    local = sdy.propagate(COUNTED, local=True).local()
    with pytest.raises(OptionError, match="there are 4"):
        local.per_device(4)
    with pytest.raises(OptionError, match="there is no device '3'"):
        local.per_device("3")  # type: ignore[arg-type]


def test_collectives_tell_their_groups() -> None:
    """A local program lists its collectives in the order of the text, with devices in the order of the shards."""
    local = sdy.propagate(WHOLE, local=True).local(per_dim_all_gather=True)
    actual = [(item.kind, str(item.type), item.groups) for item in local.collectives]
    assert actual == [
        ("all_gather", "tensor<3x4xf32>", ((2, 3), (0, 1))),
        ("all_gather", "tensor<6x4xf32>", ((2, 0), (3, 1))),
    ]
    assert local.mesh.device_ids == (2, 0, 3, 1)


def test_costs_of_local_programs_count_their_collectives() -> None:
    """The bytes that a device sends are those of the program with explicit collectives."""
    from shardy_py.cost.local_cost import price_local
    from shardy_py.cost.session import Session

    result = sdy.propagate(WHOLE, local=True)
    cost = price_local(result.local(), result.registry, "cpu-8")
    expected = Session.open(WHOLE).evaluate(None, None).cost
    assert cost.communication_bytes.value == expected.communication_bytes.value > 0
    assert cost.argument_bytes.value == 24


@pytest.mark.usefixtures("one_process")
def test_a_program_runs_as_one_device_does() -> None:
    """Outside of manual computations the number of the device is that of one device, and sizes are those of wholes."""
    text = TEXT.replace("-> tensor<6x4xf32> {", "-> (tensor<6x4xf32>, tensor<ui32>, tensor<i32>) {", 1)
    more = """  %1 = stablehlo.partition_id : tensor<ui32>
      %2 = stablehlo.get_dimension_size %a, dim = 1 : (tensor<4x6xf32>) -> tensor<i32>
      return %0, %1, %2 : tensor<6x4xf32>, tensor<ui32>, tensor<i32>"""
    text = text.replace("  return %0 : tensor<6x4xf32>", more)
    local = sdy.propagate(text, explicit_collectives=True).local()
    assert [int(value) for value in local.run(np.zeros((4, 6), np.float32))[1:]] == [0, 6]


@pytest.mark.usefixtures("one_process")
def test_groups_along_axes_run() -> None:
    """A collective whose groups are axes of a mesh runs, with the groups in the order of the mesh's devices."""
    text = """
    sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[2, 0, 3, 1]>
    func.func @main(%a: tensor<4x6xf32>) -> tensor<2x6xf32> {
      %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{}, {"y"}]>]
          manual_axes={"x", "y"} (%b: tensor<2x3xf32>) {
        %1 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
            replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh,
            axes = [#stablehlo.axis_ref<name = "x">]>, use_global_device_ids}> ({
          ^bb0(%c: tensor<f32>, %d: tensor<f32>):
            %2 = stablehlo.add %c, %d : tensor<f32>
            stablehlo.return %2 : tensor<f32>
        }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
        sdy.return %1 : tensor<2x3xf32>
      } : (tensor<4x6xf32>) -> tensor<2x6xf32>
      return %0 : tensor<2x6xf32>
    }
    """
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    local = sdy.propagate(text, local=True).local()
    (actual,) = local.run(array)
    np.testing.assert_array_equal(actual, array[:2] + array[2:])
    assert "replica_group_mesh_axes" in local.text


@pytest.mark.usefixtures("one_process")
def test_a_fourier_transform_stays_row_major_before_a_gather() -> None:
    """XLA:CPU gathers along the first dimension of a layout, and transforms row-major tensors only: both run."""
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<3x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}) ->
        (tensor<3x4x5xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) {
      %0 = stablehlo.fft %a, type = RFFT, length = [8] : (tensor<3x4x8xf32>) -> tensor<3x4x5xcomplex<f32>>
      return %0 : tensor<3x4x5xcomplex<f32>>
    }"""
    array = np.random.default_rng(0).normal(size=(3, 4, 8)).astype("float32")
    local = sdy.propagate(text, explicit_collectives=True).local()
    assert [item.kind for item in local.collectives] == ["all_gather"]
    np.testing.assert_allclose(local.run(array)[0], np.fft.rfft(array), rtol=1e-4, atol=1e-4)


class Rows:
    """A dialect with a constant."""

    @sdy.hookimpl
    def shardy_register_dialects(self):
        dialect = sdy.Dialect("rows")
        dialect.op("rows.make", traits=[sdy.ConstantLike, sdy.Pure])
        dialect.op("rows.sized", rule="i -> i", local=_sized)
        dialect.op("rows.pack", rule="i -> i")
        dialect.type("!rows.array", shape_of=lambda type: [int(type.parameters)])
        return [dialect]


def _sized(op, shard):
    (rows,) = shard.result_shape()
    return shard.copy(size=rows, sizes=(rows, rows))


def test_warnings_and_costs_name_the_places_of_the_program_that_was_given(tmp_path) -> None:
    """The local program is made of a copy, whose locations are those of the file."""
    rows = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
    file = tmp_path / "rows.mlir"
    file.write_text(f"""sdy.mesh @mesh = <["x"=2]>
    // A comment, which no copy has.
    func.func @main(%x: tensor<4xf32> {rows}) -> (tensor<4xf32> {rows}, tensor<4xf32> {rows}) {{
      %0 = "rows.sort"(%x) : (tensor<4xf32>) -> tensor<4xf32>
      %1 = "rows.make"() : () -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }}
    """)
    local = sdy.propagate(file, local=True, plugins=[Rows()]).local()
    make, sort = local.warnings
    assert (sort.location, make.location) == (f"{file}:4:12", f"{file}:5:12")
    assert sort.message.startswith("the operands are gathered whole")
    assert make.message.startswith("each device makes the results whole")
    places = {op.name: op.location for op in local.shard_program.walk()}
    assert places["rows.sort"] == f"{file}:4:12"


@pytest.mark.usefixtures("one_process")
def test_what_is_summed_already_is_not_summed_again() -> None:
    """A module whose collectives are explicit gets others beside them when it is propagated again."""
    text = """
    sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
        -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}]>}, tensor<f32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
          : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
      %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1]
          : (tensor<4x6xf32>, tensor<f32>) -> tensor<f32>
      return %0, %1 : tensor<4xf32>, tensor<f32>
    }"""
    once = sdy.propagate(text, explicit_collectives=True).text
    assert "sdy.reduce_scatter" in once
    twice = sdy.propagate(once, local=True).local()
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    rows, two_rows = twice.run(array)
    np.testing.assert_array_equal(rows, array.sum(1))
    np.testing.assert_array_equal(two_rows, array.sum())


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_local_program_cannot_be_copied(duplicate) -> None:
    """It holds a native module; the error says what can be sent."""
    local = sdy.propagate(TEXT, local=True).local()
    with pytest.raises(OptionError, match="send its text"):
        duplicate(local)


def test_attributes_that_a_local_form_changes_keep_their_width() -> None:
    """Numbers of the op graph have no width; the op that they are written to has."""
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%x: tensor<5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) -> tensor<5xf32> {
      %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<5xf32>
      %1 = "rows.sized"(%0) {size = 5 : i32, sizes = array<i32: 5, 5>} : (tensor<5xf32>) -> tensor<5xf32>
      return %1 : tensor<5xf32>
    }"""
    local = sdy.propagate(text, local=True, plugins=[Rows()]).local()
    assert "size = 3 : i32, sizes = array<i32: 3, 3>" in local.text


def test_types_of_dialects_have_their_shapes() -> None:
    """Whole values keep their types; what parts of one are called knows its dialect only, which is the error."""
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "rows.pack"(%x) : (tensor<4xf32>) -> !rows.array<4>
      %1 = "rows.pack"(%0) : (!rows.array<4>) -> tensor<4xf32>
      return %1 : tensor<4xf32>
    }"""
    local = sdy.propagate(text, {"x": 2}, local=True, plugins=[Rows()]).local()
    assert '"rows.pack"(%arg0) : (tensor<4xf32>) -> !rows.array<4>' in local.text
    with pytest.raises(ShardyError, match="are known to its dialect only, which cannot be gathered"):
        sdy.propagate(text, {"x": 2}, in_shardings={0: ("x",)}, local=True, plugins=[Rows()])


INDEX = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %n: ARGUMENT) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("type_", "hint"),
    [("index", "tensor of i64"), ("tensor<8xi7>", "i32 or f32")],
)
def test_an_argument_that_no_array_is_has_a_place(type_: str, hint: str) -> None:
    """The error names the function, its line and the fix."""
    with pytest.raises(UnsupportedError, match=f"argument 1 of the main function has the type {type_}") as caught:
        sdy.propagate(INDEX.replace("ARGUMENT", type_), local=True)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.location, diagnostic.op) == ("-:3:1", "func.func")
    assert hint in diagnostic.hint


def test_xla_takes_no_index(tmp_path: Path) -> None:
    """A local program may have tensors of index; running it, or the program, is an error with the place and the fix."""
    path = tmp_path / "index.mlir"
    path.write_text(INDEX.replace("ARGUMENT", "tensor<8xindex>"))
    result = sdy.propagate(path, local=True)
    for run in (lambda: result.local().run(np.ones(4, np.float32), np.arange(8)), result.to_jax):
        with pytest.raises(UnsupportedError, match=r"type tensor<8xindex>, which no array") as caught:
            run()
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.location == f"{path}:3:1"
        assert "tensor of i64" in diagnostic.hint


def test_what_is_no_array_is_named() -> None:
    """Lists of different lengths are no array; the error has the number of the argument, for a compiled module, too."""
    result = sdy.propagate(TEXT.replace('"x"=2, "y"=2], device_ids=[2, 0, 3, 1]', '"x"=1, "y"=1]'), local=True)
    for run in (result.local().run, result.to_jax()):
        with pytest.raises(OptionError, match=r"argument 0 is no array: ValueError: .*inhomogeneous"):
            run([[1.0], [2.0, 3.0]])
