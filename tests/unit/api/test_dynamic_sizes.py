"""Dynamic sizes: shardings pass through them, and sizes that a caller gives make a program static."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

import shardy_py as sdy
from shardy_py.errors import OptionError, RuleError, ShardyError, UnsupportedError
from shardy_py.ir import Program

LAYER = """
sdy.mesh @mesh = <["d"=2, "m"=2]>
func.func @main(%x: tensor<?x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>},
                %w: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"m"}, {}]>}) -> tensor<?x4xf32> {
  %0 = stablehlo.tanh %x : tensor<?x16xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<?x16xf32>, tensor<16x4xf32>) -> tensor<?x4xf32>
  return %1 : tensor<?x4xf32>
}
"""
SLICED = """
sdy.mesh @mesh = <["d"=2, "m"=2]>
func.func @main(%x: tensor<?x16xf32>) -> (tensor<?x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) {
  %0 = sdy.sharding_constraint %x <@mesh, [{}, {}]> : tensor<?x16xf32>
  %1 = stablehlo.tanh %0 : tensor<?x16xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"d"}, {}]> : tensor<?x16xf32>
  return %2 : tensor<?x16xf32>
}
"""
PADDED = """
sdy.mesh @mesh = <["d"=2]>
func.func @main(%x: tensor<?x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}) -> tensor<?x16xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.pad %x, %0, low = [1, 0], high = [1, 0], interior = [0, 0]
      : (tensor<?x16xf32>, tensor<f32>) -> tensor<?x16xf32>
  return %1 : tensor<?x16xf32>
}
"""
EXPORTED = """
sdy.mesh @mesh = <["d"=2]>
func.func @main(%x: tensor<?x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?xf32>) {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>
  %2 = stablehlo.compare EQ, %1, %0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%2, %1, %0)
      {api_version = 2 : i32, error_message = "rows: {0} and {1}", has_side_effect = true}
      : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
  %3:2 = call @inner(%0, %x, %y) : (tensor<i32>, tensor<?x8xf32>, tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?xf32>)
  return %3#0, %3#1 : tensor<?x8xf32>, tensor<?xf32>
}
func.func private @inner(%n: tensor<i32>, %x: tensor<?x8xf32>, %y: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<?xf32>) {
  %c = stablehlo.constant dense<8> : tensor<1xi32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %1 = stablehlo.concatenate %0, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %2 = stablehlo.dynamic_iota %1, dim = 0 : (tensor<2xi32>) -> tensor<?x8xf32>
  %3 = stablehlo.add %x, %2 : tensor<?x8xf32>
  %4 = stablehlo.multiply %3, %y : tensor<?x8xf32>
  %5 = stablehlo.reduce(%4 init: %z) applies stablehlo.add across dimensions = [1]
      : (tensor<?x8xf32>, tensor<f32>) -> tensor<?xf32>
  return %4, %5 : tensor<?x8xf32>, tensor<?xf32>
}
"""
TOY = sdy.Dialect("m")
TOY.op("m.mm", rule="i k, k j -> i j", reduction="k")
TOY.op("m.merge", rule="i j -> (i j)")
TOY.op("m.split", rule="(i j) -> i j")
TOY.op("m.cat", rule="i j, i j -> i j", permutation="i", any_sizes=True)


@TOY.op("m.half")
def half(op: Any) -> sdy.OpShardingRule | None:
    """Return a rule by arithmetic with sizes."""
    return sdy.rule("(h i) j -> i j", h=2, need_replication="h") if op.operands[0].type.shape[0] // 2 else None


def build(body: Callable[[sdy.Builder, Any], Any], shape: tuple[int | None, ...] = (None, 16)) -> Program:
    """Return a program over two devices whose argument is sharded along its first dimension."""
    builder = sdy.Builder(mesh={"d": 2})
    with builder.function("main", [sdy.tensor(*shape)]) as (x,):
        builder.shard(x, '[{"d"}' + ", {}" * (len(shape) - 1) + "]")
        builder.return_(body(builder, x))
    return builder.build()


def propagate(program: Program, **options: Any) -> sdy.Result:
    """Return the propagated program of the toy dialect."""
    return sdy.propagate(program, registry=sdy.Registry.of([TOY]), **options)


def test_shardings_pass_through_dynamic_dimensions() -> None:
    """A dynamic dimension is sharded as any other, also through a product, and stays dynamic in the module."""
    result = sdy.propagate(LAYER, explicit_collectives=True)
    assert str(result.results[0]) == '<@mesh, [{"d"}, {}]>'
    assert "stablehlo.tanh" in result.text
    assert "tensor<?x16xf32>" in result.text
    assert "sdy.all_reduce" in result.text


def test_explanations_know_dynamic_sizes() -> None:
    """The trace is replayed with the same rules."""
    result = sdy.propagate(LAYER, trace=True)
    assert '"d" comes from function argument' in str(result.explain("%1", dim=0))


@pytest.mark.parametrize(
    ("names", "types", "expected"),
    [
        (["m.merge"], [(None,)], '<@mesh, [{"d"}]>'),
        (["m.merge", "m.split"], [(None,), (None, 16)], '<@mesh, [{"d"}, {}]>'),
        (["m.half"], [(None, 16)], None),
    ],
)
def test_rules_are_bound_to_unknown_sizes(names: list[str], types: list[Any], expected: str | None) -> None:
    """A factor of an unknown size counts as one that the axes divide; compounds take what is known of their parts."""

    def body(builder: sdy.Builder, value: Any) -> Any:
        for name, shape in zip(names, types, strict=True):
            value = builder.op(name, [value], [sdy.tensor(*shape)])
        return value

    result = propagate(build(body)).results[0]
    assert (str(result) if result is not None else None) == expected


def test_sizes_of_results_follow_from_those_of_arguments() -> None:
    """Factors carry sizes through products, merged and split dimensions; the graph that was given stays dynamic."""

    def body(builder: sdy.Builder, x: Any) -> Any:
        merged = builder.op("m.merge", [x], [sdy.tensor(None)])
        return builder.op("m.split", [merged], [sdy.tensor(None, 16)])

    program = build(body)
    result = propagate(program, sizes={"arg0.0": 6})
    assert [str(op.results[0].type) for op in result.program.walk() if op.name.startswith("m.")] == [
        "tensor<96xf32>",
        "tensor<6x16xf32>",
    ]


def test_a_program_with_sizes_runs() -> None:
    """The local program of a module whose sizes were given computes what numpy computes."""
    local = sdy.propagate(LAYER, sizes={"arg0.0": 6}, explicit_collectives=True).local()
    x = np.linspace(-1, 1, 96, dtype=np.float32).reshape(6, 16)
    w = np.linspace(0, 1, 64, dtype=np.float32).reshape(16, 4)
    assert local.arguments[0].shard_shape == (3, 16)
    np.testing.assert_allclose(local.run(x, w)[0], np.tanh(x) @ w, rtol=1e-5)


@pytest.mark.parametrize("is_explicit", [False, True])
def test_a_local_program_has_dynamic_sizes(is_explicit: bool) -> None:
    """Shards have dynamic sizes as well; a run takes them from the arrays, which must have equal parts."""
    local = sdy.propagate(LAYER, explicit_collectives=is_explicit).local()
    assert "stablehlo.tanh %arg0" in local.text
    assert local.text.count("tensor<?x16xf32>") > 1
    x = np.linspace(-1, 1, 80, dtype=np.float32).reshape(5, 16)
    w = np.linspace(0, 1, 64, dtype=np.float32).reshape(16, 4)
    with pytest.raises(OptionError, match="dimension 0 of argument 0 has 5 elements, not 2 equal parts"):
        local.run(x, w)
    if is_explicit:
        np.testing.assert_allclose(local.run(x[:4], w)[0], np.tanh(x[:4]) @ w, rtol=1e-5)


def test_what_needs_a_number_names_the_dimension() -> None:
    """Slices of whole tensors, costs, arrays of JAX and sessions need sizes, and say which and how to give them."""
    result = sdy.propagate(LAYER)
    padded = sdy.propagate(PADDED)
    for needs, words in (
        (padded.local, r"op: the op needs the size of a dynamic dimension on a device, for \w+ of 'stablehlo\.\w+'"),
        (result.cost, r"a cost needs a number for dimension 0 of argument"),
        (result.to_jax, r"argument 0 has a dynamic size in dimension 0"),
        (lambda: sdy.Session.open(LAYER), r"argument 0: .*static shape"),
    ):
        with pytest.raises(UnsupportedError, match=words) as caught:
            needs()
        assert "arg0.0" in str(caught.value.diagnostics[0].hint)
    sdy.Session.open(LAYER, sizes={"?": 8})


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"arg1.0": 6}, "'arg1.0' is not a dynamic dimension"),
        ({"arg0.0": 0}, "the size of 'arg0.0' is 0"),
        ({"arg0.0": "six"}, "the size of 'arg0.0' is 'six'"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: Any, words: str) -> None:
    """Unknown names and sizes that are no positive integers are errors."""
    with pytest.raises((OptionError, ShardyError), match=words):
        sdy.propagate(LAYER, sizes=sizes)


def test_a_size_that_does_not_follow_is_refused() -> None:
    """Along a permuted factor operands and results may differ in size."""
    program = build(lambda builder, x: builder.op("m.cat", [x, x], [sdy.tensor(None, 16)]))
    with pytest.raises(UnsupportedError, match=r"the sizes of result 0 .* do not follow"):
        propagate(program, sizes={"?": 8})


def test_a_manual_computation_does_not_have_the_type_of_its_operand() -> None:
    """Shapes in its body are those of shards: they do not follow from sizes outside, and its result may be another."""
    text = """
    sdy.mesh @mesh = <["d"=2]>
    func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"d"}, {}]>] out_shardings=[<@mesh, [{"d"}, {}]>]
          manual_axes={"d"} (%shard: tensor<?x4xf32>) {
        sdy.return %shard : tensor<?x4xf32>
      } : (tensor<?x4xf32>) -> tensor<?x4xf32>
      return %0 : tensor<?x4xf32>
    }
    """
    with pytest.raises(UnsupportedError, match=r"'sdy.manual_computation' op: the sizes of result 0 .* do not follow"):
        sdy.propagate(text, sizes={"arg0.0": 8})


def test_known_sizes_that_contradict_are_still_errors() -> None:
    """Only unknown sizes fit any size."""
    program = build(lambda builder, x: builder.op("m.mm", [x, x], [sdy.tensor(None, 16)]), (8, 16))
    with pytest.raises(RuleError, match="factor k has size 16 in operand 0, but 8 in operand 1"):
        propagate(program)


class Rows(sdy.Frontend):
    """A frontend whose programs have a dynamic size and a name for it."""

    name = "rows"

    def accepts(self, source: object) -> bool:
        """Return whether this is the text ``rows``."""
        return source == "rows"

    def import_program(self, source: Any) -> Program:
        """Return a program with one argument."""
        builder = sdy.Builder()
        with builder.function("main", [sdy.tensor(None, 16)]) as (x,):
            builder.return_(builder.op("m.merge", [x], [sdy.tensor(None)]))
        return builder.build()

    def argument_names(self, program: Program, function: Any) -> list[str]:
        """Return the name of the argument."""
        return ["images"]


class RowsPlugin:
    """A plugin with the frontend, and with the dialect of its programs."""

    @sdy.hookimpl
    def shardy_register_dialects(self) -> list[sdy.Dialect]:
        """Return the dialect."""
        return [TOY]

    @sdy.hookimpl
    def shardy_register_frontends(self) -> list[sdy.Frontend]:
        """Return the frontend."""
        return [Rows()]


def test_arguments_of_a_frontend_keep_their_names() -> None:
    """Sizes and shardings are given by the names of the frontend, although it cannot write a program with sizes."""
    options = {"in_shardings": {"images": ("d", None)}, "plugins": [RowsPlugin()]}
    result = sdy.propagate("rows", {"d": 2}, sizes={"images.0": 8}, **options)
    assert result.local().arguments[0].shard_shape == (4, 16)


def test_errors_show_dynamic_sizes() -> None:
    """Where shapes do not fit a rule, a dynamic size is shown as such."""
    builder = sdy.Builder(mesh={"d": 2})
    with builder.function("main", [sdy.tensor(None, 3)]) as (x,):
        builder.return_(builder.op("m.wide", [x], [sdy.tensor(None, 4)]))
    toy = sdy.Dialect("m")
    toy.op("m.wide", rule=sdy.rules.broadcast)
    with pytest.raises(RuleError, match=r"operands \?x3; results \?x4"):
        sdy.propagate(builder.build(), registry=sdy.Registry.of([toy]))


@pytest.mark.parametrize("sizes", [{"?": 6}, {"arg0.0": 6}])
def test_shapes_that_a_program_computes_get_numbers(sizes: dict[str, int]) -> None:
    """As in programs that `jax.export` writes: through calls, and by an assertion from one argument to another."""
    text = sdy.propagate(EXPORTED, sizes=sizes).text
    assert "?" not in text.replace("?}", "")
    assert "stablehlo.iota dim = 0" in text
    assert "shape_assertion" not in text


def test_an_assertion_about_sizes_that_does_not_hold_is_an_error() -> None:
    """With the text that the program has for it."""
    with pytest.raises(OptionError, match="rows: 4 and 6"):
        sdy.propagate(EXPORTED, sizes={"arg0.0": 6, "arg1.0": 4})


@pytest.mark.slow
@pytest.mark.parametrize(("count", "pads"), [(6, False), (5, True)])
def test_a_local_program_computes_with_the_sizes_of_shards(count: int, pads: bool) -> None:
    """Its counters go on from device to device, and sizes without equal parts are padded by option."""
    local = sdy.propagate(EXPORTED).local(pad_dynamic_sizes=pads)
    assert "stablehlo.dynamic_iota" in local.text
    x = np.linspace(-1, 1, count * 8, dtype=np.float32).reshape(count, 8)
    expected = (x + np.arange(count, dtype=np.float32)[:, None]) * x
    rows, sums = local.run(x, x)
    np.testing.assert_allclose(rows, expected, rtol=1e-5)
    np.testing.assert_allclose(sums, expected.sum(1), rtol=1e-5, atol=1e-6)


def test_a_device_rounds_sizes_without_equal_parts_up() -> None:
    """Two of three columns are on the first device, and the sizes that the counter takes are those of its type."""
    text = """
    sdy.mesh @mesh = <["d"=2]>
    func.func @main(%sizes: tensor<2xi32>) -> tensor<?xf32> {
      %0 = stablehlo.dynamic_iota %sizes, dim = 1 : (tensor<2xi32>) -> tensor<?x3xf32>
      %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"d"}]> : tensor<?x3xf32>
      %2 = stablehlo.sine %1 : tensor<?x3xf32>
      %3 = stablehlo.constant dense<0.0> : tensor<f32>
      %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [1]
          : (tensor<?x3xf32>, tensor<f32>) -> tensor<?xf32>
      return %4 : tensor<?xf32>
    }
    """
    local = sdy.propagate(text).local(optimize=False).text
    assert "tensor<?x2xf32>" in local
    assert "dense<[0, 1]> : tensor<2xi32>" in local
    assert "dense<[1, 2]> : tensor<2xi32>" in local


def test_a_device_slices_its_part_of_a_dynamic_size() -> None:
    """Where a value is whole before and sharded after, the part is as many rows as the size has per device."""
    local = sdy.propagate(SLICED).local()
    assert "stablehlo.real_dynamic_slice" in local.text
    assert "stablehlo.get_dimension_size" in local.text


def test_a_local_program_asserts_that_the_size_it_divides_has_equal_parts() -> None:
    """Who runs the text without JAX is told by the assertion that `jax.export` writes, with both numbers."""
    text = str(sdy.propagate(SLICED).local().per_device(2))
    assertion = next(line for line in text.splitlines() if "@shape_assertion" in line)
    assert "has_side_effect = true" in assertion
    assert "shape_assertion" not in sdy.propagate(text, sizes={"arg0.0": 8}).text
    with pytest.raises(OptionError, match="dimension 0 has 7 elements, which are not 2 equal parts"):
        sdy.propagate(text, sizes={"arg0.0": 7})


_ROWS = '{sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}'


@pytest.mark.parametrize(
    "op",
    [
        "stablehlo.concatenate %x, %y, dim = 0 : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>",
        "stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 8] : (tensor<?x8xf32>, tensor<i32>, tensor<i32>)"
        " -> tensor<2x8xf32>",
    ],
)
def test_no_pass_counts_on_exchanges_that_need_a_number(op: str) -> None:
    """Along a dynamic size an op gets its operands otherwise, and no communication pass fails."""
    text = f"""
    sdy.mesh @mesh = <["d"=2]>
    func.func @main(%x: tensor<?x8xf32> {_ROWS}, %y: tensor<4x8xf32>, %i: tensor<i32>) -> {op.rpartition("-> ")[2]} {{
      %0 = {op}
      return %0 : {op.rpartition("-> ")[2]}
    }}"""
    local = sdy.propagate(text).local()
    assert local.collectives
    assert local.warnings == ()


def test_an_op_that_needs_a_number_is_the_one_of_the_source() -> None:
    """Not the slice or the constant that its local form made for it."""
    text = f"""
    sdy.mesh @mesh = <["d"=2]>
    func.func @main(%x: tensor<?x8xf32> {_ROWS}) -> tensor<?x8xf32> {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = "stablehlo.reduce_window"(%x, %z) <{{
        window_dimensions = array<i64: 3, 1>, padding = dense<[[2, 0], [0, 0]]> : tensor<2x2xi64>
      }}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32>
      return %0 : tensor<?x8xf32>
    }}"""
    with pytest.raises(UnsupportedError, match=r"-:5:12: error: 'stablehlo.reduce_window' op: the op needs the size"):
        sdy.propagate(text).local()


def test_two_calls_of_one_function_have_their_own_integers() -> None:
    """What one call gives a function says nothing of the other."""
    text = """
    func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<i32>, tensor<i32>) {
      %a = stablehlo.constant dense<3> : tensor<i32>
      %b = stablehlo.constant dense<5> : tensor<i32>
      %0 = call @next(%a) : (tensor<i32>) -> tensor<i32>
      %1 = call @next(%b) : (tensor<i32>) -> tensor<i32>
      return %x, %0, %1 : tensor<?xf32>, tensor<i32>, tensor<i32>
    }
    func.func private @next(%n: tensor<i32>) -> tensor<i32> {
      %c = stablehlo.constant dense<1> : tensor<i32>
      %0 = stablehlo.add %n, %c : tensor<i32>
      return %0 : tensor<i32>
    }
    """
    sized = sdy.propagate(text, sizes={"?": 4}).text
    assert "dense<4> : tensor<i32>" in sized
    assert "dense<6> : tensor<i32>" in sized


@pytest.mark.parametrize(("result", "number"), [("%product", 4 * 1664525**2 % 2**32), ("%chosen", 7)])
def test_integers_of_a_program_stay_within_their_types(result: str, number: int) -> None:
    """A product of `i32` wraps around, and a number that is not zero is true."""
    text = f"""
    func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<i32>) {{
      %a = stablehlo.constant dense<1664525> : tensor<i32>
      %seven = stablehlo.constant dense<7> : tensor<i32>
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %square = stablehlo.multiply %a, %a : tensor<i32>
      %product = stablehlo.multiply %square, %n : tensor<i32>
      %has_rows = stablehlo.convert %n : (tensor<i32>) -> tensor<i1>
      %has_none = stablehlo.not %has_rows : tensor<i1>
      %chosen = stablehlo.select %has_none, %n, %seven : tensor<i1>, tensor<i32>
      return %x, {result} : tensor<?xf32>, tensor<i32>
    }}
    """
    assert f"dense<{number}> : tensor<i32>" in sdy.propagate(text, sizes={"?": 4}).text


def test_rows_of_integers_are_joined() -> None:
    """As `jax.export` joins the padding of the spatial dimensions of a convolution."""
    text = """
    func.func @main(%x: tensor<?x4x4x1xf32>, %w: tensor<3x3x1x1xf32>) -> tensor<?x?x?x1xf32> {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4x4x1xf32>) -> tensor<i32>
      %low = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %high = stablehlo.constant dense<1> : tensor<1xi32>
      %line = stablehlo.concatenate %low, %high, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %row = stablehlo.reshape %line : (tensor<2xi32>) -> tensor<1x2xi32>
      %other = stablehlo.constant dense<0> : tensor<1x2xi32>
      %pads = stablehlo.concatenate %row, %other, dim = 0 : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<2x2xi32>
      %0 = "stablehlo.dynamic_conv"(%x, %w, %pads) <{
        batch_group_count = 1 : i64, feature_group_count = 1 : i64,
        dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
      }> : (tensor<?x4x4x1xf32>, tensor<3x3x1x1xf32>, tensor<2x2xi32>) -> tensor<?x?x?x1xf32>
      return %0 : tensor<?x?x?x1xf32>
    }
    """
    sized = sdy.propagate(text, sizes={"?": 2}).text
    assert "[2, 1], [0, 0]" in sized
    assert "tensor<2x5x2x1xf32>" in sized


def test_a_size_that_a_loop_changes_is_an_error() -> None:
    """What a loop carries has one size, which is not that of two of it."""
    text = """
    func.func @main(%n: tensor<i32>, %x: tensor<?xf32>) -> tensor<?xf32> {
      %r:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, tensor<?xf32>
        cond {
          %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
        } do {
          %w = stablehlo.concatenate %v, %v, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
          stablehlo.return %i, %w : tensor<i32>, tensor<?xf32>
        }
      return %r#1 : tensor<?xf32>
    }
    """
    with pytest.raises(UnsupportedError, match="has the size 8 by the operands, and 4 where"):
        sdy.propagate(text, sizes={"?": 4})
