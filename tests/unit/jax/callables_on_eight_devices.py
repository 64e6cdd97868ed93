"""Tests of programs as functions of JAX on eight devices; test_eight_devices.py runs them in a process of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardy_py as sdy
from shardy_py.errors import OptionError, UnsupportedError

X = np.random.default_rng(0).random((8, 16), np.float32)
W = np.random.default_rng(1).random((16, 32), np.float32)
ORDERS = {"in order": [0, 1, 2, 3, 4, 5, 6, 7], "shuffled": [3, 1, 2, 0, 7, 6, 5, 4]}


def make_mesh(order: str = "in order", type_: AxisType = AxisType.Auto) -> Mesh:
    """Return a mesh of four by two devices."""
    devices = np.array(jax.devices())[ORDERS[order]].reshape(4, 2)
    return Mesh(devices, ("x", "y"), axis_types=(type_,) * 2)


def put(array: Any, mesh: Mesh, *spec: Any) -> Any:
    """Return an array over a mesh."""
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def product(x: Any, w: Any) -> Any:
    """Return rows that are sums over what both operands are sharded along."""
    return jnp.tanh(jnp.sin(x) @ w).sum(0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("type_", [AxisType.Auto, AxisType.Explicit])
def test_arrays_over_the_mesh_of_the_caller(order: str, type_: AxisType) -> None:
    """Nothing passes through the host, and results lie over the caller's mesh, also in programs of the caller."""
    mesh = make_mesh(order, type_)
    x, w = put(X, mesh, "x", "y"), put(W, mesh, "y")
    spec = NamedSharding(mesh, P("x", None))

    def inner(x: Any, w: Any) -> Any:
        explicit = {"out_sharding": spec} if type_ == AxisType.Explicit else {}
        return jnp.tanh(jnp.einsum("ab,bc->ac", jnp.sin(x), w, **explicit)).sum(0)

    run = sdy.propagate(jax.jit(inner).lower(x, w)).to_jax()
    run(x, w)
    with jax.transfer_guard("disallow"):
        (actual,) = run(x, w)
    np.testing.assert_allclose(actual, product(X, W), rtol=1e-5)
    assert actual.sharding.mesh == mesh
    np.testing.assert_allclose(jax.jit(lambda x, w: run(x, w)[0] * 2)(x, w), 2 * product(X, W), rtol=1e-5)
    with jax.set_mesh(mesh):
        np.testing.assert_allclose(jax.jit(lambda x, w: run(x, w)[0] * 2)(x, w), 2 * product(X, W), rtol=1e-5)


def test_nothing_is_decided_by_xla() -> None:
    """The compiled program has the collectives of the local program, no others."""
    mesh = make_mesh()
    result = sdy.propagate(jax.jit(product).lower(put(X, mesh, "x", "y"), put(W, mesh, "y")))
    kinds = [item.kind for item in result.local().collectives]
    text = result.to_jax().hlo()
    assert kinds == ["all_reduce", "all_reduce"]
    assert text.count(" all-reduce(") == 2
    assert "all-gather" not in text


def test_loops_rematerialization_and_exports() -> None:
    """A program is called in a scan, under `jax.checkpoint`, and in what `jax.export` writes."""
    x = put(X, make_mesh(), "x")
    run = sdy.propagate(jax.jit(lambda x: jnp.sin(x) * 0.5).lower(x)).to_jax()
    actual = jax.jit(lambda x: jax.lax.scan(lambda c, _: (run(c)[0], None), x, length=3)[0])(x)
    expected = X
    for _ in range(3):
        expected = np.sin(expected) * 0.5
    np.testing.assert_allclose(actual, expected, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.checkpoint(lambda x: run(x)[0]))(x), np.sin(X) * 0.5, rtol=1e-5)
    exported = jax.export.export(jax.jit(lambda x: run(x)[0]))(x)
    again = jax.export.deserialize(exported.serialize())
    np.testing.assert_allclose(again.call(x), np.sin(X) * 0.5, rtol=1e-5)


SUMS = """
sdy.mesh @mesh = <["y"=2]>
func.func @main(%a: tensor<ROWSx16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})
    -> (tensor<ROWSxf32>, tensor<ROWSx16xf32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1]
      : (tensor<ROWSx16xf32>, tensor<f32>) -> tensor<ROWSxf32>
  %1 = stablehlo.iota dim = 1 : tensor<ROWSx16xf32>
  %2 = stablehlo.add %a, %1 : tensor<ROWSx16xf32>
  return %0, %2 : tensor<ROWSxf32>, tensor<ROWSx16xf32>
}"""


@pytest.mark.parametrize("is_checked", [False, True])
@pytest.mark.parametrize("type_", [AxisType.Auto, AxisType.Explicit])
def test_inside_a_shard_map_over_other_axes(type_: AxisType, is_checked: bool) -> None:
    """A program over the free axes runs once for each coordinate along the others."""
    run = sdy.propagate(SUMS.replace("ROWS", "2")).to_jax()
    specs: dict[str, Any] = {"in_specs": P("x"), "out_specs": [P("x"), P("x")], "axis_names": {"x"}}
    mapped = jax.shard_map(run, mesh=make_mesh(type_=type_), check_vma=is_checked, **specs)
    sums, counted = jax.jit(mapped)(X)
    np.testing.assert_allclose(sums, X.sum(1), rtol=1e-5)
    np.testing.assert_allclose(counted, X + np.arange(16), rtol=1e-5)
    taken = jax.shard_map(run, mesh=make_mesh(), in_specs=P("y"), out_specs=[P("y"), P("y")], axis_names={"y"})
    with pytest.raises(UnsupportedError, match="mesh-conflict"):
        jax.jit(taken)(X[:4])


def test_in_the_context_of_a_mesh_with_more_axes() -> None:
    """Along axes that the program does not have, every device does the same."""
    run = sdy.propagate(SUMS.replace("ROWS", "8")).to_jax()
    mesh = make_mesh()
    with jax.set_mesh(mesh):
        sums, counted = jax.jit(lambda a: run(a))(put(X, mesh, "x"))
    np.testing.assert_allclose(sums, X.sum(1), rtol=1e-5)
    np.testing.assert_allclose(counted, X + np.arange(16), rtol=1e-5)


SEVERAL = """
sdy.mesh @one = <FIRST>
sdy.mesh @other = <SECOND>
func.func @main(%a: tensor<12x18xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}, {"y"}]>},
                %b: tensor<12x18xf32> {sdy.sharding = #sdy.sharding<@other, [{"a"}, {"c"}]>})
    -> (tensor<12x18xf32> {sdy.sharding = #sdy.sharding<@one, [{"x"}, {}]>},
        tensor<12x18xf32> {sdy.sharding = #sdy.sharding<@other, [{}, {"c"}]>}) {
  %0 = stablehlo.sine %a : tensor<12x18xf32>
  %1 = stablehlo.cosine %b : tensor<12x18xf32>
  return %0, %1 : tensor<12x18xf32>, tensor<12x18xf32>
}"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('["x"=4, "y"=2]', '["a"=2, "c"=2, "d"=2]'),
        ('["x"=4, "y"=2]', '["a"=2, "c"=2, "d"=2], device_ids=[0, 4, 2, 6, 1, 5, 3, 7]'),
        ('["x"=4, "y"=2]', '["a"=2, "c"=2, "d"=2], device_ids=[7, 3, 5, 1, 6, 2, 4, 0]'),
        ('["x"=3, "y"=2]', '["a"=2, "c"=3]'),
    ],
)
def test_meshes_with_different_axes(first: str, second: str) -> None:
    """Axes are cut where that is enough; otherwise arrays are resharded where they come and go."""
    run = sdy.propagate(SEVERAL.replace("FIRST", first).replace("SECOND", second)).to_jax()
    x = np.arange(216, dtype=np.float32).reshape(12, 18) / 100
    for call in (run, jax.jit(run)):
        sine, cosine = call(x, x)
        np.testing.assert_allclose(sine, np.sin(x), rtol=1e-5)
        np.testing.assert_allclose(cosine, np.cos(x), rtol=1e-5, atol=1e-6)


def test_given_shardings_over_another_mesh_than_constraints() -> None:
    """Shardings of arguments and results may be over other axes of the devices, in the same order."""
    mesh = make_mesh()
    other = Mesh(mesh.devices.reshape(2, 2, 2), ("a", "b", "c"))
    turned = Mesh(mesh.devices[::-1].reshape(2, 2, 2), ("a", "b", "c"))

    def run(over: Mesh, **shardings: Any) -> Any:
        constraint = NamedSharding(over, P("a", "c"))
        function = sdy.jit(lambda x: jax.lax.with_sharding_constraint(jnp.sin(x), constraint) * 2, **shardings)
        return function(X)

    given, wanted = NamedSharding(mesh, P("x", "y")), NamedSharding(other, P("c", "b"))
    for shardings in (
        {"in_shardings": given},
        {"out_shardings": given},
        {"in_shardings": given, "out_shardings": wanted},
    ):
        result = run(other, **shardings)
        np.testing.assert_allclose(result, 2 * np.sin(X), rtol=1e-6)
        if "out_shardings" in shardings:
            assert result.sharding.is_equivalent_to(shardings["out_shardings"], 2)
        with pytest.raises(OptionError, match="mesh-conflict"):
            run(turned, **shardings)
        with pytest.raises(OptionError, match="mesh-conflict"):
            run(other, mesh=turned, **shardings)
    for given in ({}, {"in_shardings": P("c", "b")}):
        np.testing.assert_allclose(run(turned, mesh=turned, **given), 2 * np.sin(X), rtol=1e-6)
        with pytest.raises(OptionError, match="mesh-conflict"):
            run(other, mesh=turned, **given)


def test_shardings_over_another_mesh_than_the_context() -> None:
    """A function runs over its own meshes, eagerly and in `jax.jit`, where `jax.set_mesh` has other axes."""
    mesh = make_mesh()
    other = NamedSharding(Mesh(mesh.devices.reshape(2, 2, 2), ("a", "b", "c")), P("c", "b"))
    one = sdy.jit(lambda x, w: jnp.sin(x) @ w, in_shardings=(other, None))
    both = sdy.jit(lambda x, w: jnp.sin(x) @ w, in_shardings=(other, NamedSharding(mesh, P("x"))))
    for type_ in (AxisType.Auto, AxisType.Explicit):
        with jax.set_mesh(make_mesh(type_=type_)):
            for function in (one, both, jax.jit(one)):
                np.testing.assert_allclose(function(X, W), np.sin(X) @ W, rtol=1e-5)


@pytest.mark.parametrize("keeps_uneven", [False, True])
def test_uneven_arguments_are_padded(keeps_uneven: bool) -> None:
    """Thirteen rows go to eight devices, and come back as thirteen."""
    text = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<13x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<13xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1]
      : (tensor<13x4xf32>, tensor<f32>) -> tensor<13xf32>
  return %0 : tensor<13xf32>
}"""
    run = sdy.propagate(text, keep_uneven_shardings=keeps_uneven).to_jax()
    array = np.random.default_rng(2).random((13, 4), np.float32)
    for call in (run, jax.jit(run)):
        np.testing.assert_allclose(call(array)[0], array.sum(1), rtol=1e-5)
    assert run.local.arguments[0].shard_shape == ((2, 4) if keeps_uneven else (13, 4))


@pytest.mark.parametrize("type_", ["f32", "i32", "i1", "i64", "bf16"])
@pytest.mark.parametrize("is_result", [False, True])
def test_unreduced_values_are_the_sum_of_their_parts(type_: str, is_result: bool) -> None:
    """What an unreduced argument is fed with adds up to it, and an unreduced result is added up."""
    partial = '[{"y"}, {}], unreduced={"x"}'
    ends = ('[{"y"}, {}]', partial) if is_result else (partial, '[{"y"}, {}]')
    text = f"""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x4x{type_}> {{sdy.sharding = #sdy.sharding<@mesh, {ends[0]}>}})
    -> (tensor<8x4x{type_}> {{sdy.sharding = #sdy.sharding<@mesh, {ends[1]}>}}) {{
  %0 = stablehlo.multiply %a, %a : tensor<8x4x{type_}>
  return %0 : tensor<8x4x{type_}>
}}"""
    run = sdy.propagate(text).to_jax()
    array = (np.arange(32) % 3).astype(run.in_types[0].dtype).reshape(8, 4)
    np.testing.assert_array_equal(run(array)[0], array * array)


@pytest.mark.parametrize("spec", [P("x", "y"), P(("x", "y")), P("y", "x"), P(None, ("y", "x"))])
def test_types_say_shardings_along_some_axes_only(spec: P) -> None:
    """A mesh may have explicit axes and others; types of results are those of `jax.jit`."""
    mesh = Mesh(make_mesh().devices, ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = put(X, mesh, *spec)
    with jax.set_mesh(mesh):
        actual, expected = (make(lambda x: jnp.sin(x) * 2)(x) for make in (sdy.jit, jax.jit))
        inside = jax.jit(lambda x: sdy.jit(jnp.sin)(x) * 2)(x)
    assert actual.sharding.is_equivalent_to(expected.sharding, 2)
    assert jax.typeof(actual) == jax.typeof(expected) == jax.typeof(inside)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    np.testing.assert_allclose(inside, expected, rtol=1e-6)


@pytest.mark.parametrize("type_", [AxisType.Auto, AxisType.Explicit])
def test_what_is_not_sharded_is_on_all_devices_of_the_context(type_: AxisType) -> None:
    """Without any sharding a function runs on all devices of the mesh of the context, as with `jax.jit`."""
    with jax.set_mesh(make_mesh("shuffled", type_)):
        actual, expected = (make(lambda: jnp.ones((8, 16)))() for make in (sdy.jit, jax.jit))
        assert actual.sharding == expected.sharding
        assert jax.typeof(actual) == jax.typeof(expected)
        actual, expected = (make(lambda x: x @ W)(X) for make in (sdy.jit, jax.jit))
    assert actual.sharding == expected.sharding
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_specs_are_over_the_mesh_of_the_call(order: str) -> None:
    """The mesh that is set at a call is that of its explanations and comparisons, where it is not set any more."""
    function = sdy.jit(lambda x: jnp.sin(x).sum(0), in_shardings=P("x", "y"), out_shardings=P("y"))
    with jax.set_mesh(make_mesh(order)):
        result = function(X)
    assert result.sharding == NamedSharding(make_mesh(order), P("y"))
    assert "x" in str(function.explain("x", 0))
    assert function._latest.result.compare_jit().equal


@pytest.mark.parametrize("in_shardings", [None, P("x", "y")])
def test_meshes_over_other_devices_make_other_programs(in_shardings: P | None) -> None:
    """Each call is over the devices of the mesh that is set, in their order, as with `jax.jit`."""
    functions = [make(jnp.sin, in_shardings=in_shardings) for make in (sdy.jit, jax.jit)]
    for order in (*ORDERS, *ORDERS):
        with jax.set_mesh(make_mesh(order)):
            actual, expected = (function(X) for function in functions)
        assert actual.sharding.is_equivalent_to(expected.sharding, 2)


def test_without_a_mesh_a_function_runs_where_its_arguments_are() -> None:
    """Its results mix with arrays over eight devices where no argument is committed to one, as with `jax.jit`."""
    there = jax.device_put(X, jax.devices()[3])
    assert sdy.jit(jnp.sin)(there).sharding == jax.jit(jnp.sin)(there).sharding
    key = sdy.jit(lambda key: jax.random.split(key)[0])(jax.random.key(0))
    drawn = jax.jit(lambda key, x: x + jax.random.normal(key, x.shape))(key, put(X, make_mesh(), "x"))
    assert len(drawn.sharding.device_set) == 8


def test_donated_arguments_and_memories() -> None:
    """A donated array is gone, and a result lies in the memory that the program asks for."""
    mesh = make_mesh()
    x = put(X, mesh, "x")
    sdy.propagate(jax.jit(lambda x: x + 1, donate_argnums=0).lower(x)).to_jax()(x)
    assert x.is_deleted()
    host, device = (NamedSharding(mesh, P("x"), memory_kind=kind) for kind in ("pinned_host", "device"))
    function = jax.jit(lambda x: jnp.sin(jax.device_put(x, device)), out_shardings=host)
    array = jax.device_put(X, host)
    (actual,) = sdy.propagate(function.lower(array)).to_jax()(array)
    np.testing.assert_allclose(actual, np.sin(X), rtol=1e-5)
    assert actual.sharding.memory_kind == "pinned_host"


def test_a_donated_array_is_refused_where_it_comes_again() -> None:
    """It does not get as far as JAX's own code, which it crashes on several devices."""
    mesh = make_mesh()
    take, read = sdy.jit(lambda x: x + 1, donate_argnums=0), sdy.jit(lambda x: x + 1)
    for _ in range(3):
        x = put(X, mesh, "x")
        np.testing.assert_array_equal(read(x), take(x))
    for function in (take, read):
        with pytest.raises(OptionError, match="argument 0 is an array that was deleted"):
            function(x)
    np.testing.assert_array_equal(take(put(X, mesh, "x")), X + 1)


def test_functions_of_python_are_called_once() -> None:
    """Each function gets whole arrays, once, and programs of the caller keep the functions of their own."""
    x, seen = put(X, make_mesh(), "x"), []

    def inner(x: Any) -> Any:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        jax.debug.callback(lambda total: seen.append(float(total)), x.sum())
        return jax.pure_callback(lambda v: (seen.append(v.shape), np.cos(v))[1], shape, x) * 2

    run = sdy.propagate(jax.jit(inner).lower(x)).to_jax()
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    actual = jax.jit(lambda x: jax.pure_callback(lambda v: v + 1, shape, run(x)[0]))(x)
    np.testing.assert_allclose(actual, 2 * np.cos(X) + 1, rtol=1e-5)
    jax.effects_barrier()
    assert len(seen) == 2
    assert (8, 16) in seen
    assert any(item == pytest.approx(X.sum(), rel=1e-5) for item in seen if isinstance(item, float))


def test_ordered_effects_keep_their_order() -> None:
    """Effects of the program come in the order of those of the program around it."""
    x, seen = put(X, make_mesh(), "x"), []

    def record(number: int, x: Any) -> Any:
        result = jax.ShapeDtypeStruct((), np.float32)
        return io_callback(lambda v: (seen.append(number), np.float32(v))[1], result, x.sum(), ordered=True)

    run = sdy.propagate(jax.jit(lambda x: x * record(1, x) + record(2, x)).lower(x)).to_jax()
    total = X.sum()
    np.testing.assert_allclose(run(x)[0], X * total + total, rtol=1e-4)
    jax.effects_barrier()
    assert seen == [1, 2]
    seen.clear()

    def outer(x: Any) -> Any:
        first = record(0, x)
        return run(x)[0] + first, record(3, x)

    jax.block_until_ready(jax.jit(outer)(x))
    jax.effects_barrier()
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("order", ORDERS)
def test_functions_that_say_how_they_are_partitioned(order: str) -> None:
    """The function of `custom_partitioning` is called for the shardings of its operands, in a loop, too."""

    def norm(x: Any, scale: Any) -> Any:
        return x / jnp.sqrt((x * x).sum(-1, keepdims=True)) * scale, (x * x).sum()

    def partition(mesh: Any, arguments: Any, results: Any) -> Any:
        sharding = arguments[0].sharding
        axis = sharding.spec[1]

        def on_device(x: Any, scale: Any) -> Any:
            names = tuple(name for entry in sharding.spec for name in (entry or ()))
            sums = (x * x).sum(-1, keepdims=True)
            sums = sums if axis is None else jax.lax.psum(sums, axis)
            return x / jnp.sqrt(sums) * scale, jax.lax.psum((x * x).sum(), names) if names else (x * x).sum()

        replicated = NamedSharding(mesh, P())
        return mesh, on_device, (sharding, replicated), (sharding, NamedSharding(mesh, P(axis)))

    partitioned = custom_partitioning(norm)
    partitioned.def_partition(partition=partition, sharding_rule="b d, d -> b d, ")
    x, scale = put(X, make_mesh(order), "x", "y"), np.linspace(1, 2, 16, dtype=np.float32)

    def program(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(carry: Any, scale: Any) -> Any:
            y, total = function(carry, scale)
            return y + total * 1e-3, total

        return jax.jit(lambda x, scale: jax.lax.scan(lambda c, _: step(c, scale), x, length=3))

    actual = sdy.propagate(program(partitioned).lower(x, scale)).to_jax()(x, scale)
    for left, right in zip(actual, program(norm)(X, scale), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4)


def test_a_dimension_that_a_rule_wants_whole() -> None:
    """A function gets the dimensions whole that its rule says it needs whole, although its shardings say nothing."""

    def norm(x: Any) -> Any:
        return x / x.sum(-1, keepdims=True)

    def partition(mesh: Any, arguments: Any, results: Any) -> Any:
        return mesh, norm, results.sharding, (arguments[0].sharding,)

    partitioned = custom_partitioning(norm)
    partitioned.def_partition(partition=partition, sharding_rule="b d -> b d", need_replication_factors=("d",))
    x = put(X, make_mesh(), "x", "y")
    (actual,) = sdy.propagate(jax.jit(partitioned).lower(x)).to_jax()(x)
    np.testing.assert_allclose(actual, norm(X), rtol=1e-5)


def test_functions_that_do_not_say_so_well() -> None:
    """An error in the function of the user names the op."""
    failing = custom_partitioning(jnp.sin)
    failing.def_partition(partition=lambda *_: 1 / 0, sharding_rule="b d -> b d")
    x = put(X, make_mesh(), "x")
    with pytest.raises(UnsupportedError, match=r"partitioned-by-jax") as caught:
        sdy.propagate(jax.jit(failing).lower(x)).to_jax()
    assert "ZeroDivisionError" in str(caught.value)


def test_what_has_no_derivative_says_what_has() -> None:
    """StableHLO cannot be differentiated or batched; the error names `sdy.jit`."""
    x = put(X, make_mesh(), "x")
    run = sdy.propagate(jax.jit(jnp.sin).lower(x)).to_jax()
    with pytest.raises(UnsupportedError, match=r"sdy\.jit"):
        jax.grad(lambda x: run(x)[0].sum())(x)
    with pytest.raises(UnsupportedError, match=r"sdy\.jit"):
        jax.vmap(run)(jnp.stack([X, X]))


DRAWS = """
sdy.mesh @m = <["a"=2, "b"=4]>
func.func @main() -> (tensor<8x4xf32>, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}, tensor<f32>) {
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<[8, 4]> : tensor<2xi64>
  %none = stablehlo.constant dense<> : tensor<0xi64>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
      : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<8x4xf32>
  %1 = stablehlo.rng %low, %high, %shape, distribution = NORMAL
      : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<8x4xf32>
  %2 = stablehlo.rng %low, %high, %none, distribution = UNIFORM
      : (tensor<f32>, tensor<f32>, tensor<0xi64>) -> tensor<f32>
  return %0, %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>
}
"""


def test_draws_without_a_key_agree_on_all_devices() -> None:
    """Devices that hold the same shard have the same numbers; those of other shards have others."""
    result = sdy.propagate(DRAWS, extended_rules=True)
    assert [len(item.groups) for item in result.local().collectives] == [1, 2, 1]
    for array in result.to_jax()():
        copies: dict[str, list[Any]] = {}
        for shard in array.addressable_shards:
            copies.setdefault(str(shard.index), []).append(np.asarray(shard.data))
        assert sum(map(len, copies.values())) == 8
        for first, *others in copies.values():
            assert all(np.array_equal(first, other) for other in others)
        assert len({items[0].tobytes() for items in copies.values()}) == len(copies)


def test_only_draws_without_a_key_differ_from_one_device() -> None:
    """Draws of a key are those of one device, bit for bit; without a key not even two runs of one device agree."""
    shardings = {"in_shardings": P(), "out_shardings": P(("y", "x")), "mesh": make_mesh()}
    for implementation in ("rbg", "unsafe_rbg", "threefry2x32"):
        key = jax.random.key(3, impl=implementation)
        for draw in (jax.random.bits, jax.random.normal):
            function = functools.partial(draw, shape=(16, 4))
            np.testing.assert_array_equal(sdy.jit(function, **shardings)(key), jax.jit(function)(key))
    without_key = jax.jit(lambda: jax.lax.rng_uniform(0.0, 1.0, (16, 4)))
    assert not np.array_equal(without_key(), without_key())
