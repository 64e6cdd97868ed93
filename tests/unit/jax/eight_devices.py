"""Tests that need eight devices; test_eight_devices.py runs them in a process of their own."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardy_py as sdy
from shardy_py.errors import OptionError, ShardyError, UnsupportedError

MESH = 'sdy.mesh @mesh = <["a"=4, "b"=2]>\n'
X = np.arange(64, dtype=np.float32).reshape(8, 8)


def module(body: str, arguments: str = "%x: tensor<8x8xf32> {A}", results: str = "tensor<8x8xf32>") -> str:
    """Return a program; ``{A}`` and ``{B}`` stand for shardings along the first axis and along the second."""
    text = MESH + f"func.func @main({arguments}) -> ({results}) {{\n{body}\n}}"
    for mark, dims in (("{A}", '[{"a"}, {}]'), ("{B}", '[{}, {"b"}]')):
        text = text.replace(mark, f"{{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}")
    return text


PRODUCT = """
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {0}>}},
                %y: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {1}>}})
    -> (tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {3}>}}) {{
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {2}>]>}}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}"""
DONATED = "main(%x: tensor<8x8xf32> {tf.aliasing_output = 0 : i32, "
NEGATE = module("%0 = stablehlo.negate %x : tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>")


def test_results_are_a_list_of_global_arrays() -> None:
    """Global arrays come out, distributed as the result says."""
    run = sdy.propagate(NEGATE).to_jax()
    results = run(X)
    assert isinstance(results, list)
    assert results[0].sharding == run.out_shardings[0] == NamedSharding(run.in_shardings[0].mesh, P("a", None))
    np.testing.assert_array_equal(results[0], -X)


@pytest.mark.parametrize(
    ("array", "named"),
    [
        (X.astype(np.int32), r"argument 0 is float32\[8,8\], given is int32\[8,8\]"),
        (X.astype(np.float64), r"float64\[8,8\]"),
        (X[:4], r"given is float32\[4,8\]"),
        (X.ravel(), r"given is float32\[64\]"),
        (3.0, r"given is float64\[\]"),
        ([[1, 2]], r"given is int64\[1,2\]"),
        ("text", "given is <U4"),
        (None, "given is object"),
    ],
)
def test_other_arrays_are_refused(array: object, named: str) -> None:
    """An array of another dtype or shape is refused, with both named."""
    with pytest.raises(OptionError, match=named):
        sdy.propagate(NEGATE).to_jax()(array)


def test_other_numbers_of_arguments_are_refused() -> None:
    """One array per argument is needed."""
    with pytest.raises(OptionError, match="has 1 arguments, 2 were given"):
        sdy.propagate(NEGATE).to_jax()(X, X)


def test_distributed_arguments() -> None:
    """An array that is distributed already, in the same way or another, or over fewer devices, is as good as any."""
    run = sdy.propagate(NEGATE).to_jax()
    mesh = run.in_shardings[0].mesh
    for spec in (P("a", None), P(None, "b"), P(("a", "b")), P()):
        (result,) = run(jax.device_put(X, NamedSharding(mesh, spec)))
        np.testing.assert_array_equal(result, -X)
    np.testing.assert_array_equal(run(jnp.asarray(X))[0], -X)
    np.testing.assert_array_equal(run(run(X)[0])[0], X)


def test_numbers_are_scalars() -> None:
    """A Python number is a scalar of any dtype of its kind that holds it; no other."""
    text = module(
        "return %i, %f, %p, %c : tensor<i8>, tensor<bf16>, tensor<i1>, tensor<complex<f32>>",
        "%i: tensor<i8>, %f: tensor<bf16>, %p: tensor<i1>, %c: tensor<complex<f32>>",
        "tensor<i8>, tensor<bf16>, tensor<i1>, tensor<complex<f32>>",
    )
    run = sdy.propagate(text).to_jax()
    assert [array.item() for array in run(3, 2, True, 1.5)] == [3, 2.0, True, 1.5]
    for numbers in ((300, 2, True, 1), (3.0, 2, True, 1), (3, 1j, True, 1), (3, 2, 1, 1), (True, 2, True, 1)):
        with pytest.raises(OptionError, match="given is"):
            run(*numbers)


def test_every_dtype() -> None:
    """Arrays of every dtype that JAX has go through unchanged, with 64 bits too."""
    types = {
        "i1": bool,
        "i4": ml_dtypes.int4,
        "ui4": ml_dtypes.uint4,
        "i8": np.int8,
        "ui8": np.uint8,
        "i16": np.int16,
        "ui16": np.uint16,
        "i32": np.int32,
        "ui32": np.uint32,
        "i64": np.int64,
        "ui64": np.uint64,
        "f8E4M3FN": ml_dtypes.float8_e4m3fn,
        "f8E5M2": ml_dtypes.float8_e5m2,
        "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
        "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
        "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
        "bf16": ml_dtypes.bfloat16,
        "f16": np.float16,
        "f32": np.float32,
        "f64": np.float64,
        "complex<f32>": np.complex64,
        "complex<f64>": np.complex128,
    }
    for name, dtype in types.items():
        type_ = f"tensor<8x8x{name}>"
        text = module(
            f"%0 = stablehlo.transpose %x, dims = [1, 0] : ({type_}) -> {type_}\nreturn %0 : {type_}",
            f"%x: {type_} {{A}}",
            type_,
        )
        array = np.arange(64).reshape(8, 8).__mod__(3).astype(dtype)
        if name in ("i64", "f64"):
            array[0, 1] = 2**33 + 1
        (result,) = sdy.propagate(text).to_jax()(array)
        assert result.dtype == array.dtype
        assert np.asarray(result).tobytes() == array.T.copy().tobytes(), name


def test_keys_are_numbers() -> None:
    """A key of jax.random stands for its numbers."""
    text = module("return %k : tensor<2xui32>", "%k: tensor<2xui32>", "tensor<2xui32>")
    key = jax.random.key(7)
    assert sdy.propagate(text).to_jax()(key)[0].tolist() == jax.random.key_data(key).tolist()


def test_empty_arrays_and_no_results() -> None:
    """Arrays without elements, functions without results, and without arguments run."""
    empty = module("return %x : tensor<0x8xf32>", "%x: tensor<0x8xf32>", "tensor<0x8xf32>")
    assert sdy.propagate(empty).to_jax()(np.zeros((0, 8), np.float32))[0].shape == (0, 8)
    assert sdy.propagate(module("return", results="")).to_jax()(X) == []
    assert sdy.propagate(module("return", "", "")).to_jax()() == []


def test_donated_arguments() -> None:
    """A donated array whose place a result takes is gone afterwards; every other array stays as it was."""
    for results, is_gone in (("tensor<8x8xf32> {A}", True), ("tensor<8x8xf32> {B}", False)):
        text = module("%0 = stablehlo.negate %x : tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>", results=results)
        run = sdy.propagate(text.replace("main(%x: tensor<8x8xf32> {", DONATED)).to_jax()
        assert run.donated == {0}
        argument = X.copy()
        undonated, donated = jnp.asarray(X), jax.device_put(X, run.in_shardings[0])
        for array in (argument, undonated, donated):
            np.testing.assert_array_equal(run(array)[0], -X)
        np.testing.assert_array_equal(argument, X)
        np.testing.assert_array_equal(undonated, X)
        assert donated.is_deleted() == is_gone
        if is_gone:
            with pytest.raises(OptionError, match="was deleted"):
                run(donated)


def test_orders_of_devices() -> None:
    """Meshes with device_ids, several of them, smaller ones, and devices in another order place what they say."""
    text = """
sdy.mesh @mesh = <["a"=4, "b"=2]>
sdy.mesh @turned = <["a"=4, "b"=2], device_ids=[7, 3, 5, 1, 6, 2, 4, 0]>
sdy.mesh @small = <["x"=2], device_ids=[1, 0]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@turned, [{"a"}, {"b"}]>},
                %z: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@small, [{}, {"x"}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.negate %x : tensor<8x8xf32>
  %1 = stablehlo.negate %y : tensor<8x8xf32>
  %2 = stablehlo.negate %z : tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}"""
    devices = jax.devices()[::-1]
    for order in (None, devices, np.array(devices).reshape(2, 4)):
        chosen = jax.devices() if order is None else devices
        run = sdy.propagate(text).to_jax(order)
        results = run(X, X + 1, X + 2)
        for number, result in enumerate(results):
            np.testing.assert_array_equal(result, -X - number)
        shards = {shard.device: shard.index for shard in results[1].addressable_shards}
        assert shards[chosen[7]] == (slice(0, 2), slice(0, 4))
        assert shards[chosen[0]] == (slice(6, 8), slice(4, 8))
        assert {shard.device: shard.index for shard in results[2].addressable_shards}[chosen[1]][1] == slice(0, 4)


def test_sub_axes_at_the_interface() -> None:
    """Arguments may use different parts of one axis."""
    text = module(
        "%0 = stablehlo.add %x, %y : tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>",
        '%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2}, {}]>},'
        '%y: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a":(2)2}]>}',
    )
    np.testing.assert_array_equal(sdy.propagate(text).to_jax()(X, X)[0], 2 * X)


def test_modules_that_do_not_run() -> None:
    """What XLA does not take, would wait for for ever, or would die of is an error, and no end of the process."""
    infeed = """
func.func @main(%t: !stablehlo.token) -> tensor<8xf32> {
  %0:2 = "stablehlo.infeed"(%t) {infeed_config = "", layout = [[0]]} : (!stablehlo.token)
      -> (tensor<8xf32>, !stablehlo.token)
  return %0#0 : tensor<8xf32>
}"""
    callback = module(
        "stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {has_side_effect = true} : (tensor<8x8xf32>) -> ()\n"
        "return",
        results="",
    )
    unknown = module(
        "%0 = stablehlo.custom_call @nobody(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>"
    )
    token = module(
        '%t = "stablehlo.create_token"() : () -> !stablehlo.token\nreturn %t : !stablehlo.token', "", "!stablehlo.token"
    )
    dynamic = module("return %x : tensor<?xf32>", "%x: tensor<?xf32>", "tensor<?xf32>")
    for text, code in (
        (infeed, "waits-for-ever"),
        (callback, "python-callback"),
        (unknown, "refused-by-xla"),
        (token, "no-array-type"),
        (dynamic, "no-array-type"),
        (NEGATE.replace('"a"=4', '"a"=16'), "too-few-devices"),
    ):
        with pytest.raises(ShardyError) as caught:
            sdy.propagate(text).to_jax().hlo()
        assert caught.value.diagnostics[0].code == code


def test_sizes_that_are_set() -> None:
    """A size that is set is left out where only elementwise ops follow, and refused before a reduction."""
    head = (
        '%i = stablehlo.constant dense<5> : tensor<i32>\n%0 = "stablehlo.set_dimension_size"(%x, %i)'
        " {dimension = 0 : i64} : (tensor<8x8xf32>, tensor<i32>) -> tensor<8x8xf32>\n"
    )
    (result,) = sdy.propagate(
        module(head + "%1 = stablehlo.negate %0 : tensor<8x8xf32>\nreturn %1 : tensor<8x8xf32>")
    ).to_jax()(X)
    np.testing.assert_array_equal(np.asarray(result)[:5], -X[:5])
    reduction = (
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%1 = stablehlo.reduce(%0 init: %z) applies"
        " stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>\n"
        "return %1 : tensor<8xf32>"
    )
    with pytest.raises(UnsupportedError, match=r"stablehlo\.reduce would have to know"):
        sdy.propagate(module(head + reduction, results="tensor<8xf32>")).to_jax()


@pytest.mark.parametrize(("window", "stride"), [(2, 1), (3, 1), (4, 2), (3, 2), (2, 2)])
def test_select_and_scatter_along_a_sharded_dimension(window: int, stride: int) -> None:
    """Windows that overlap by half and more are scattered as on one device; XLA's partitioner alone gets them wrong."""
    count = (8 - window) // stride + 1
    text = module(
        f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.select_and_scatter"(%x, %y, %z) <{{padding = dense<0> : tensor<2x2xi64>,
        window_dimensions = array<i64: {window}, 1>, window_strides = array<i64: {stride}, 1>}}> ({{
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %1 = stablehlo.compare GE, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }}, {{
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %1 = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }}) : (tensor<8x8xf32>, tensor<{count}x8xf32>, tensor<f32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>""",
        f"%x: tensor<8x8xf32> {{A}}, %y: tensor<{count}x8xf32>",
    )
    source = np.random.default_rng(0).standard_normal((count, 8)).astype(np.float32)
    values = np.random.default_rng(1).permutation(X.ravel()).reshape(8, 8)
    expected = np.zeros_like(X)
    for row in range(count):
        chosen = row * stride + values[row * stride : row * stride + window].argmax(0)
        expected[chosen, np.arange(8)] += source[row]
    np.testing.assert_allclose(sdy.propagate(text).to_jax()(values, source)[0], expected, rtol=1e-6)


def padded(low: int, high: int, interior: int, size: int = 8) -> str:
    """Return a program that pads a tensor, which is sharded where its size divides."""
    count = low + high + size + (size - 1) * interior
    return module(
        f"""%z = stablehlo.constant dense<7.0> : tensor<f32>
    %v = stablehlo.negate %x : tensor<{size}x8xf32>
    %0 = stablehlo.pad %v, %z, low = [{low}, 0], high = [{high}, 0], interior = [{interior}, 0]
        : (tensor<{size}x8xf32>, tensor<f32>) -> tensor<{count}x8xf32>
    return %0 : tensor<{count}x8xf32>""",
        f"%x: tensor<{size}x8xf32>" + " {A}" * (size % 4 == 0),
        f"tensor<{count}x8xf32>" + " {A}" * (count % 4 == 0),
    )


@pytest.mark.parametrize(
    ("low", "high", "interior", "size"),
    [(-1, 2, 1, 8), (-2, -2, 2, 8), (-5, 2, 3, 8), (-1, 0, 3, 4), (-2, 2, 1, 8), (0, -1, 3, 7)],
)
def test_pads_along_a_sharded_dimension(low: int, high: int, interior: int, size: int) -> None:
    """Elements are cut off and spread as on one device; XLA's partitioner ends the process, or refuses it."""
    expected = jax.lax.pad(-X[:size], jnp.float32(7), ((low, high, interior), (0, 0, 0)))
    (result,) = sdy.propagate(padded(low, high, interior, size)).to_jax()(X[:size])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("start", [-100, -1, 0, 3, 5, 7, 8, 100])
@pytest.mark.parametrize("size", [1, 4, 8])
def test_slices_that_start_outside_of_a_sharded_dimension(start: int, size: int) -> None:
    """Starts of slices and updates are clamped as on one device, also where the slice is sharded."""
    body = f"""
    %i = stablehlo.constant dense<0> : tensor<i32>
    %u = stablehlo.constant dense<7.0> : tensor<{size}x8xf32>
    %0 = stablehlo.dynamic_update_slice %x, %u, %n, %i
        : (tensor<8x8xf32>, tensor<{size}x8xf32>, tensor<i32>, tensor<i32>) -> tensor<8x8xf32>
    %1 = stablehlo.dynamic_slice %x, %n, %i, sizes = [{size}, 8]
        {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"a"}}, {{}}]>]>}}
        : (tensor<8x8xf32>, tensor<i32>, tensor<i32>) -> tensor<{size}x8xf32>
    return %0, %1 : tensor<8x8xf32>, tensor<{size}x8xf32>"""
    text = module(body, "%x: tensor<8x8xf32> {A}, %n: tensor<i32>", f"tensor<8x8xf32>, tensor<{size}x8xf32>")
    updated, sliced = sdy.propagate(text).to_jax()(X, np.int32(start))
    first = min(max(start, 0), 8 - size)
    expected = X.copy()
    expected[first : first + size] = 7
    np.testing.assert_array_equal(updated, expected)
    np.testing.assert_array_equal(sliced, X[first : first + size])


@pytest.mark.parametrize("dim", [-1, -2, 0, 1])
def test_sorts_count_from_either_end(dim: int) -> None:
    """A sort along a sharded dimension is right, from whichever end the dimension is counted."""
    text = module(f"""
    %0 = "stablehlo.sort"(%x) <{{dimension = {dim} : i64}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }}) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>""")
    (actual,) = sdy.propagate(text).to_jax()(X)
    np.testing.assert_array_equal(actual, np.flip(X, dim))
    (actual,) = sdy.propagate(text, local=True).local().run(X)
    np.testing.assert_array_equal(actual, np.flip(X, dim))


def test_windows_over_spread_elements() -> None:
    """A reduction over windows of a dilated tensor is that of one device; XLA's partitioner ends the process."""
    text = module(
        """%z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %z) <{base_dilations = array<i64: 3, 1>,
        padding = dense<[[-1, -1], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 3, 1>}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %1 = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<18x8xf32>
    return %0 : tensor<18x8xf32>""",
        results="tensor<18x8xf32>",
    )
    expected = jax.lax.reduce_window(X, 0.0, jax.lax.add, (3, 1), (1, 1), ((-1, -1), (0, 0)), base_dilation=(3, 1))
    np.testing.assert_array_equal(sdy.propagate(text).to_jax()(X)[0], expected)


def test_what_xla_shards_itself_is_tried_first() -> None:
    """A pad that XLA may shard, and would end the process for, is an error with its op and what helps."""
    result = sdy.propagate(padded(-1, 2, 1))
    with pytest.raises(UnsupportedError, match="xla-wrong-numbers"):
        result.to_jax(partitioner="xla", leave_open=True)
    with pytest.raises(UnsupportedError, match="ends-xla") as caught:
        result.to_jax(partitioner="xla", leave_open=True, warnings=[])
    assert caught.value.diagnostics[0].op == "stablehlo.pad"
    assert "operands of the stablehlo.pad" in caught.value.diagnostics[0].hint


def test_faults_that_end_xla_are_tried_in_another_process() -> None:
    """A program that is compiled to be measured, although it meets a fault, does not end this process."""
    text = module("""
    %0 = "stablehlo.sort"(%x) <{dimension = -2 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>""")
    problems: list[sdy.Diagnostic] = []
    with pytest.raises(UnsupportedError, match="XLA would end the process") as caught:
        sdy.propagate(text).to_jax(partitioner="xla", warnings=problems)
    assert caught.value.diagnostics[0].op == "stablehlo.sort"
    assert [item.code for item in problems] == ["xla-wrong-numbers"]


SCATTERED_SUMS = [
    ('[{}, {"c"}]', '[{"c"}, {}]', '[{"c"}, {"b", "a"}]'),
    ('[{"b"}, {"c"}]', '[{"c"}, {"a"}]', '[{"c"}, {"b", "a"}]'),
    ('[{"b"}, {"a"}]', '[{"a"}, {}]', '[{"c", "b"}, {"a"}]'),
    ('[{"b"}, {"c"}]', '[{"c"}, {"b"}]', '[{"c"}, {"a", "b"}]'),
]
Y = np.random.default_rng(0).standard_normal((2, 8, 8)).astype(np.float32)


@pytest.mark.parametrize(("left", "right", "sum_"), SCATTERED_SUMS)
def test_sums_scattered_in_another_order(left: str, right: str, sum_: str) -> None:
    """A product is the same in whatever order its result has the axes; XLA's partitioner alone gets some wrong."""
    product = sdy.propagate(PRODUCT.format(left, right, sum_, sum_)).to_jax()(*Y)[0]
    np.testing.assert_allclose(product, Y[0] @ Y[1], rtol=1e-4, atol=1e-5)


def test_convolutions_scattered_in_another_order() -> None:
    """A sum over features, too, is the same in whatever order its result has the axes."""
    text = """
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"c"}]>},
                %y: tensor<1x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"c"}, {}]>})
    -> (tensor<8x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {}, {"b", "a"}]>}) {
  %0 = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
       sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"c"}, {}, {"b", "a"}]>]>}
      : (tensor<8x4x8xf32>, tensor<1x8x16xf32>) -> tensor<8x4x16xf32>
  return %0 : tensor<8x4x16xf32>
}"""
    left, right = (np.random.default_rng(0).standard_normal(shape).astype("f4") for shape in ((8, 4, 8), (1, 8, 16)))
    np.testing.assert_allclose(sdy.propagate(text).to_jax()(left, right)[0], left @ right[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("left", "kernel", "sum_"),
    [
        ('[{}, {"b"}, {}]', '[{"b"}, {}, {}]', "[{}, {}, {}]"),
        ('[{}, {"b"}, {}]', '[{"b"}, {}, {}]', '[{}, {"a"}, {}]'),
        ('[{}, {"b"}, {}]', '[{"b"}, {}, {"a"}]', '[{}, {}, {"a"}]'),
        ('[{"c"}, {"b"}, {}]', '[{"b"}, {}, {"a"}]', '[{"c"}, {}, {"a"}]'),
        ('[{"c"}, {"b"}, {"a"}]', '[{"b"}, {"a"}, {}]', "[{}, {}, {}]"),
    ],
)
def test_convolutions_over_spatial_shards(left: str, kernel: str, sum_: str) -> None:
    """Parts of the sum that several devices have count once."""
    text = f"""
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<4x8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {left}>}},
                %k: tensor<4x8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, {kernel}>}}) -> tensor<4x7x4xf32> {{
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{pad = [[1, 1]]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
       sdy.sharding = #sdy.sharding_per_value<[<@mesh, {sum_}>]>}}
      : (tensor<4x8x8xf32>, tensor<4x8x4xf32>) -> tensor<4x7x4xf32>
  return %0 : tensor<4x7x4xf32>
}}"""
    x = np.arange(256, dtype=np.float32).reshape(4, 8, 8) % 7
    k = np.arange(128, dtype=np.float32).reshape(4, 8, 4) % 5
    (actual,) = sdy.propagate(text).to_jax()(x, k)
    expected = jax.lax.conv_general_dilated(x, k, (1,), [(1, 1)], dimension_numbers=("NWC", "WIO", "NWC"))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    ("left", "kernel", "result"),
    [
        ('[{}, {}, {"a"}]', '[{}, {"a"}, {}]', "[{}, {}, {}]"),
        ('[{}, {}, {"a"}]', '[{}, {"a"}, {}]', '[{}, {}, {"a"}]'),
        ('[{}, {"b"}, {"a"}]', '[{}, {"a"}, {}]', '[{"b"}, {}, {"a"}]'),
        ('[{"b"}, {}, {}]', '[{}, {}, {"b"}]', '[{}, {}, {"b"}]'),
        ("[{}, {}, {}]", "[{}, {}, {}]", '[{"a"}, {}, {}]'),
    ],
)
@pytest.mark.parametrize("size", [8, 6])
def test_convolutions_of_groups_of_the_batch(left: str, kernel: str, result: str, size: int) -> None:
    """Gradients of depthwise convolutions are right, whether their features divide by the devices or not."""
    text = f"""
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x8x{size}xf32> {{sdy.sharding = #sdy.sharding<@mesh, {left}>}},
                %k: tensor<3x{size}x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {kernel}>}}) -> tensor<2x6x8xf32> {{
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{}}
      {{batch_group_count = 4 : i64, feature_group_count = 1 : i64,
       sdy.sharding = #sdy.sharding_per_value<[<@mesh, {result}>]>}}
      : (tensor<8x8x{size}xf32>, tensor<3x{size}x8xf32>) -> tensor<2x6x8xf32>
  return %0 : tensor<2x6x8xf32>
}}"""
    x = np.arange(64 * size, dtype=np.float32).reshape(8, 8, size) % 7
    k = np.arange(24 * size, dtype=np.float32).reshape(3, size, 8) % 5
    (actual,) = sdy.propagate(text).to_jax()(x, k)
    numbers = ("NWC", "WIO", "NWC")
    expected = jax.lax.conv_general_dilated(x, k, (1,), [(0, 0)], dimension_numbers=numbers, batch_group_count=4)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("layout", "low"), [("WNC", 1), ("NWC", -1), ("NWC", 1), ("NCW", -2)])
def test_convolutions_over_spread_elements(layout: str, low: int) -> None:
    """Gradients of strided convolutions are right, wherever their spatial dimension is and whatever is cut off."""
    dims = {"N": (4, "b"), "C": (2, "f"), "W": (16, "0")}
    shape = [dims[letter][0] for letter in layout]
    sharding = "[" + ", ".join('{"a"}' if letter == "W" else "{}" for letter in layout) + "]"
    numbers = ", ".join(dims[letter][1] for letter in layout)
    sizes, size = "x".join(map(str, shape)), 31 + low
    text = (
        MESH
        + f"""
func.func @main(%x: tensor<{sizes}xf32> {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}},
                %k: tensor<3x2x2xf32>) -> tensor<4x{size}x2xf32> {{
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [{numbers}]x[0, i, o]->[b, 0, f],
      window = {{pad = [[{low}, 2]], lhs_dilate = [2]}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64,
       sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}, {{"a"}}, {{}}]>]>}}
      : (tensor<{sizes}xf32>, tensor<3x2x2xf32>) -> tensor<4x{size}x2xf32>
  return %0 : tensor<4x{size}x2xf32>
}}"""
    )
    x = np.arange(128, dtype=np.float32).reshape(shape) % 7
    k = np.arange(12, dtype=np.float32).reshape(3, 2, 2) % 5
    (actual,) = sdy.propagate(text).to_jax()(x, k)
    expected = jax.lax.conv_general_dilated(
        x, k, (1,), [(low, 2)], lhs_dilation=(2,), dimension_numbers=(layout, "WIO", "NWC")
    )
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("indices", ['[{}, {"b"}]', '[{"a"}, {"b"}]', '[{"b"}, {}]'])
def test_indices_sharded_along_their_parts(indices: str) -> None:
    """Elements are looked up and added where their indices say, however those are sharded."""
    text = module(
        """
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}>
        : (tensor<8x8xf32>, tensor<4x2xi32>) -> tensor<4x4xf32>
    %1 = "stablehlo.scatter"(%x, %i, %0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<8x8xf32>, tensor<4x2xi32>, tensor<4x4xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>""",
        f"%x: tensor<8x8xf32> {{A}}, %i: tensor<4x2xi32> {{sdy.sharding = #sdy.sharding<@mesh, {indices}>}}",
    )
    places = np.array([[0, 0], [7, 4], [3, 1], [3, 3]], np.int32)
    expected = X.copy()
    for row, column in places:
        expected[row, column : column + 4] += X[row, column : column + 4]
    (actual,) = sdy.propagate(text).to_jax()(X, places)
    np.testing.assert_array_equal(actual, expected)


def test_windows_over_tensors_with_other_shardings() -> None:
    """Windows over two tensors see both, however they and the results are sharded."""
    text = """
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %y: tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})
    -> (tensor<8x7xf32>, tensor<8x7xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {}]>}) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "stablehlo.reduce_window"(%x, %y, %z, %n) <{window_dimensions = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>):
    %1 = stablehlo.add %a, %c : tensor<f32>
    %2 = stablehlo.maximum %b, %d : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, [{"c"}, {"b"}]>]>}
      : (tensor<8x8xf32>, tensor<8x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<8x7xf32>, tensor<8x7xi32>)
  return %0#0, %0#1 : tensor<8x7xf32>, tensor<8x7xi32>
}"""
    y = X.astype(np.int32)
    sums, largest = sdy.propagate(text).to_jax()(X, y)
    np.testing.assert_array_equal(sums, X[:, 1:] + X[:, :-1])
    np.testing.assert_array_equal(largest, np.maximum(y[:, 1:], y[:, :-1]))


def test_xla_still_scatters_sums_wrongly() -> None:
    """`jax.jit` alone gets the first of these products wrong; once it does not, it is no fault any more."""
    mesh = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(jax.sharding.AxisType.Auto,) * 3)
    left, right, sum_ = (NamedSharding(mesh, spec) for spec in (P(None, "c"), P("c", None), P("c", ("b", "a"))))
    product = jax.jit(jnp.matmul, in_shardings=(left, right), out_shardings=sum_)(*Y)
    assert np.abs(np.asarray(product) - Y[0] @ Y[1]).max() > 1


# Behind a barrier nothing is sharded, unless XLA propagates on its own.
ALONE = "%v = sdy.propagation_barrier %x allowed_direction=NONE : tensor<8x8xf32>\n"
LEFT_ALONE = {
    "tanh": "%0 = stablehlo.tanh %v : tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>",
    "dot": "%0 = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>)"
    " -> tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>",
    "cosine": """%z = stablehlo.constant dense<0> : tensor<i32>
    %0:3 = stablehlo.while(%i = %z, %w = %v, %u = %v) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %n = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %i, %n : tensor<i32>
      %2 = stablehlo.cosine %w : tensor<8x8xf32>
      %3 = stablehlo.add %2, %u : tensor<8x8xf32>
      stablehlo.return %1, %3, %u : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    }
    return %0#1 : tensor<8x8xf32>""",
    "sine": """%s = stablehlo.slice %x [0:1, 0:1] : (tensor<8x8xf32>) -> tensor<1x1xf32>
    %r = stablehlo.reshape %s : (tensor<1x1xf32>) -> tensor<f32>
    %i = stablehlo.convert %r : (tensor<f32>) -> tensor<i32>
    %0 = "stablehlo.case"(%i) ({
      %1 = stablehlo.sine %v : tensor<8x8xf32>
      stablehlo.return %1 : tensor<8x8xf32>
    }, {
      stablehlo.return %v : tensor<8x8xf32>
    }) : (tensor<i32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>""",
    "sort": """%0 = "stablehlo.sort"(%v) <{dimension = 1 : i64}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %1 = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>""",
    "exponential": """%0 = func.call @f(%v) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
  func.func private @f(%y: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %1 = stablehlo.exponential %y : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>""",
}


@pytest.mark.parametrize("opcode", LEFT_ALONE)
def test_values_that_propagation_left_alone_stay_replicated(opcode: str) -> None:
    """In XLA's final HLO an op that propagation left alone works on the whole tensor, unless it is left open."""
    result = sdy.propagate(module(ALONE + LEFT_ALONE[opcode]))

    def shapes(**options: Any) -> set[str]:
        (final,) = result.to_jax(**options).executable.hlo_modules()
        return set(re.findall(rf"= f32\[([\d,]+)\]\S* {opcode}\(", final.to_string()))

    assert shapes(partitioner="xla") == {"8,8"}
    assert shapes(partitioner="xla", leave_open=True) == {"2,8"}


def test_sharded_values_are_sharded_as_decided() -> None:
    """In XLA's final HLO every device computes the part that propagation decided, and no other."""
    text = module(
        "%0 = stablehlo.tanh %x : tensor<8x8xf32>\nreturn %0 : tensor<8x8xf32>", results="tensor<8x8xf32> {B}"
    )
    (final,) = sdy.propagate(text).to_jax().executable.hlo_modules()
    assert re.findall(r"= f32\[([\d,]+)\]\S* tanh\(", final.to_string()) == ["2,4"]


@pytest.mark.parametrize(
    ("shape", "spec"),
    [
        ((8, 8), P("a", "b")),
        ((8, 8), P(None, "a")),
        ((8, 6, 4), P("b", None, "a")),
        ((16,), P(("b", "a"))),
        ((8,), P()),
    ],
)
def test_pictures_show_what_jax_does(shape: tuple[int, ...], spec: P) -> None:
    """A device holds the part that JAX's sharding of the array gives it."""
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    placed = NamedSharding(mesh, spec)
    with jax.set_mesh(mesh):
        lowered = jax.jit(lambda x: -x, in_shardings=placed).lower(np.zeros(shape, "float32"))
    picture = sdy.propagate(lowered).picture(0)
    for device, index in placed.devices_indices_map(shape).items():
        (part,) = [part for part, devices in picture.devices.items() if device.id in devices]
        for dim, number, count in zip(picture.dims, part, picture.counts, strict=True):
            assert index[dim].start == number * shape[dim] // count
