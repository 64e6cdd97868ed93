"""Stages and options of `sdy.jit` against those of `jax.jit` on eight devices; run by test_eight_devices.py."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardy_py as sdy

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
X = np.random.default_rng(0).random((8, 16), np.float32)
PARTITIONERS = ("shardy_py", "xla")


def over(*spec: Any) -> NamedSharding:
    """Return a sharding over the mesh."""
    return NamedSharding(MESH, P(*spec))


DONATIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "no result, which propagation shards": (lambda x: x.sum(), {"in_shardings": over("x")}),
    "a twin, which propagation shards": (lambda x: x + 1, {"in_shardings": over("x")}),
    "a twin": (lambda x: x + 1, {"in_shardings": over("x"), "out_shardings": over("x")}),
    "a twin of larger shards": (lambda x: x + 1, {"in_shardings": over("x"), "out_shardings": over()}),
    "a twin with shards of the same size": (
        lambda x: x + 1,
        {"in_shardings": over("x"), "out_shardings": over(None, "x")},
    ),
    "no result": (lambda x: x.sum(), {"in_shardings": over("x"), "out_shardings": over()}),
    "one result of two, which propagation shards": (
        lambda x: (x.sum(), x[0]),
        {"in_shardings": over("x"), "out_shardings": (over(), None)},
    ),
    "smaller shards that are as many": (
        lambda x: x[:, :4].astype("int32"),
        {"in_shardings": over("x", "y"), "out_shardings": over("x")},
    ),
    "one device": (lambda x: x.sum(), {}),
}


def donation_warnings(jit: Any, function: Any, options: dict[str, Any]) -> tuple[list[str], bool]:
    """Return the warnings of a call about donated buffers, and whether the argument is gone after it."""
    array = jax.device_put(X, options["in_shardings"]) if options else jnp.array(X)
    # JAX remembers which functions it has warned of.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jit(lambda x: function(x), donate_argnums=0, **options)(array)
    return [str(item.message) for item in caught if "donated" in str(item.message)], array.is_deleted()


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize("name", DONATIONS)
def test_donations_are_warned_of_where_jax_jit_does(name: str, partitioner: Any) -> None:
    """The text of the warning is JAX's, and the argument is gone where it is with `jax.jit`."""
    function, options = DONATIONS[name]
    expected = donation_warnings(jax.jit, function, options)
    assert donation_warnings(lambda *a, **k: sdy.jit(*a, partitioner=partitioner, **k), function, options) == expected


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_memory_of_shards_is_reused_where_their_sizes_fit() -> None:
    """Two arrays of different sizes can have shards of one size, as the shardings decide."""
    options: dict[str, Any] = {"in_shardings": (over("x"), over(None, "y")), "donate_argnums": (0, 1)}
    options["out_shardings"] = over("x", "y")
    weights = np.hstack([X.T] * 4)
    compiled = [jit(jnp.matmul, **options).lower(X, weights).compile() for jit in (jax.jit, sdy.jit)]
    sizes = [item.memory_analysis().alias_size_in_bytes for item in compiled]
    assert sizes[0] == sizes[1] > 0
    arrays = jax.device_put((X, weights), options["in_shardings"])
    sdy.jit(jnp.matmul, **options)(*arrays)
    assert [array.is_deleted() for array in arrays] == [True, False]


def test_some_donations_are_warned_of_and_some_are_not() -> None:
    """The cases have both."""
    numbers = {len(donation_warnings(jax.jit, *case)[0]) for case in DONATIONS.values()}
    assert numbers == {0, 1}


def layer(params: Any, x: Any) -> Any:
    """Return a tree."""
    h = jnp.sin(x @ params["up"])
    return {"y": h @ params["down"], "norm": (h.sum(),)}


PARAMS = {"up": X.T.copy(), "down": X.copy()}
SHARDINGS = ({"up": over(None, "y"), "down": over("y")}, over("x"))


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_shardings_of_a_compiled_function_are_those_of_jax_jit(partitioner: Any) -> None:
    """They are in the trees of the function, for arguments and results."""
    ours = sdy.jit(layer, in_shardings=SHARDINGS, partitioner=partitioner).lower(PARAMS, X)
    theirs = jax.jit(layer, in_shardings=SHARDINGS).lower(PARAMS, X).compile()
    compiled = ours.compile()
    shapes = [leaf.shape for leaf in jax.tree.leaves((compiled.in_avals, compiled.out_info))]
    of_ours = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    of_theirs = jax.tree.leaves((theirs.input_shardings, theirs.output_shardings))
    assert len(of_ours) == len(of_theirs) == len(shapes) == 5
    for shape, our_sharding, their_sharding in zip(shapes, of_ours, of_theirs, strict=True):
        assert our_sharding.is_equivalent_to(their_sharding, len(shape))
    assert [leaf.sharding for leaf in jax.tree.leaves(ours.out_info)] == jax.tree.leaves(compiled.output_shardings)
    results = compiled(PARAMS, X)
    assert jax.tree.map(lambda array: array.sharding, results) == compiled.output_shardings


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_shardings_of_keys_are_those_of_the_function(partitioner: Any) -> None:
    """The numbers of a key are a dimension of the program, and none of the function."""
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), over("x"))

    def function(keys: Any) -> Any:
        return jax.vmap(jax.random.split)(keys)[:, 0]

    ours = sdy.jit(function, partitioner=partitioner).lower(keys).compile()
    theirs = jax.jit(function).lower(keys).compile()
    (our_sharding,), _ = ours.input_shardings
    (their_sharding,), _ = theirs.input_shardings
    assert our_sharding.is_equivalent_to(their_sharding, 1)
    assert ours.output_shardings.is_equivalent_to(over("x"), 1)
    assert ours.out_info.sharding == ours.output_shardings


def test_devices_of_a_lowered_function() -> None:
    """A function is compiled for the devices of its mesh, or for those that it is given."""
    lowered = sdy.jit(jnp.sin, {"x": 4}, in_shardings=(P("x"),)).lower(X)
    assert lowered.compile() is lowered.compile()
    devices = tuple(jax.devices()[4:])
    compiled = lowered.compile(device_assignment=devices)
    assert compiled is not lowered.compile()
    assert compiled(X).devices() == set(devices)
    np.testing.assert_allclose(compiled(X), np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_an_exported_function_runs_on_as_many_devices(partitioner: Any) -> None:
    """It is exported with its shardings, and its gradient, too."""
    function = sdy.jit(layer, in_shardings=SHARDINGS, partitioner=partitioner)
    exported = jax.export.export(function)(PARAMS, X)
    assert exported.nr_devices == 8
    theirs = jax.export.export(jax.jit(layer, in_shardings=SHARDINGS))(PARAMS, X)
    shapes = [aval.shape for aval in theirs.in_avals]
    pairs = zip(exported.in_shardings_jax(MESH), theirs.in_shardings_jax(MESH), shapes, strict=True)
    assert all(ours.is_equivalent_to(sharding, len(shape)) for ours, sharding, shape in pairs)
    placed = jax.device_put((PARAMS, X), SHARDINGS)
    expected = jax.jit(layer)(PARAMS, X)
    again = jax.export.deserialize(exported.serialize())
    for actual, wanted in zip(jax.tree.leaves(jax.jit(again.call)(*placed)), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4)
    cotangents = jax.tree.map(jnp.ones_like, expected)
    gradients = jax.jit(exported.vjp().call)(*jax.tree.leaves(placed), *jax.tree.leaves(cotangents))
    wanted_gradients = jax.vjp(layer, PARAMS, X)[1](cotangents)
    for actual, wanted in zip(gradients, jax.tree.leaves(wanted_gradients), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4)


def test_a_traced_function_lowers_to_the_propagated_program() -> None:
    """What JAX compiles of it sends what `lower` and a call send."""
    function = sdy.jit(layer, in_shardings=SHARDINGS, schedule="contractions-first")
    traced = function.trace(PARAMS, X)
    compiled, ours = traced.lower().compile(), function.lower(PARAMS, X).compile()
    assert compiled.output_shardings == ours.output_shardings
    assert compiled.as_text().count("all-reduce(") == ours.as_text().count("all-reduce(") > 0
    np.testing.assert_allclose(compiled(PARAMS, X)["y"], layer(PARAMS, X)["y"], rtol=1e-4)


def test_a_traced_function_can_have_static_arguments_by_keyword() -> None:
    """JAX takes no shardings of arguments beside them."""
    function = sdy.jit(lambda x, n: jnp.sin(x) * n, static_argnames="n")
    array = jax.device_put(X, over("x"))
    compiled = function.trace(array, n=3).lower().compile()
    assert compiled(array).sharding.is_equivalent_to(over("x"), 2)
    assert jax.export.export(function)(array, n=3).nr_devices == 8


def test_reshards_are_constraints_in_hlo() -> None:
    """HLO has no op for a reshard."""

    def function(x: Any) -> Any:
        return jax.lax.with_sharding_constraint(jax.lax.with_sharding_constraint(x, over(None, "y")) * 2, over("x"))

    lowered = sdy.jit(function, in_shardings=over("x")).lower(X)
    assert "sdy.reshard" in lowered.as_text()
    assert 'custom_call_target="Sharding"' in lowered.as_text("hlo")


def test_a_size_that_is_not_divisible_is_traced_and_exported() -> None:
    """JAX takes no such sharding of an argument or a result, so that it is left out there."""
    function = sdy.jit(lambda x: jnp.sin(x)[:3] * 2, {"x": 2}, in_shardings=(P("x"),), keep_uneven_shardings=True)
    array = X[:7]
    exported = jax.export.export(function)(array)
    assert exported.nr_devices == 2
    assert exported.in_shardings_jax(MESH) == (None,)
    mesh = jax.sharding.Mesh(jax.devices()[:2], "x")
    actual = jax.jit(exported.call)(jax.device_put(array, NamedSharding(mesh, P())))
    np.testing.assert_allclose(actual, np.sin(array)[:3] * 2, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:backend and device argument")
def test_a_function_on_a_device_of_several() -> None:
    """It runs there, whatever its arguments lie on, as with `jax.jit`."""
    device = jax.devices()[5]
    ours, theirs = sdy.jit(jnp.sin, device=device), jax.jit(jnp.sin, device=device)
    for array in (X, jax.device_put(X, over("x"))):
        assert ours(array).devices() == theirs(array).devices() == {device}
    assert ours.lower(X).compile()(X).devices() == {device}
    for function in (ours, theirs):
        with jax.set_mesh(MESH), pytest.raises(ValueError, match="Mesh context manager"):
            function(X)
