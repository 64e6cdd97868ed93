"""Tests of `sdy.jit` under transformations on eight devices; test_eight_devices.py runs them in their own process."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import shardy_py as sdy

X = np.random.default_rng(0).random((8, 16), np.float32)
W = np.random.default_rng(1).random((16, 32), np.float32) / 4
ORDERS = {"in order": [0, 1, 2, 3, 4, 5, 6, 7], "shuffled": [3, 1, 2, 0, 7, 6, 5, 4]}


def make_mesh(order: str = "in order", type_: AxisType = AxisType.Auto) -> Mesh:
    """Return a mesh of four by two devices."""
    devices = np.array(jax.devices())[ORDERS[order]].reshape(4, 2)
    return Mesh(devices, ("x", "y"), axis_types=(type_,) * 2)


def put(array: Any, mesh: Mesh, *spec: Any) -> Any:
    """Return an array over a mesh."""
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


def assert_close(actual: Any, expected: Any, rtol: float = 1e-4) -> None:
    """Check that two trees of arrays are equal within a tolerance."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for left, right in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(left, right, rtol=rtol, atol=1e-5)


def layer(h: Any, w: Any) -> Any:
    """Return a product behind a function."""
    return jnp.tanh(jnp.sin(h) @ w)


def shardings(mesh: Mesh) -> tuple[Any, Any]:
    """Return the shardings of the arguments of `layer`."""
    return NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "y"))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("is_jitted", [False, True])
def test_gradients(order: str, is_jitted: bool) -> None:
    """Gradients are those of JAX, sharded as the arguments are."""
    mesh = make_mesh(order)
    function = sdy.jit(lambda x, w: layer(x, w).sum(), in_shardings=shardings(mesh))
    gradient: Callable[..., Any] = jax.value_and_grad(function, (0, 1))
    actual = (jax.jit(gradient) if is_jitted else gradient)(put(X, mesh, "x"), put(W, mesh, None, "y"))
    assert_close(actual, jax.value_and_grad(lambda x, w: layer(x, w).sum(), (0, 1))(X, W))
    for item, expected in zip(actual[1], shardings(mesh), strict=True):
        assert item.sharding.is_equivalent_to(expected, 2)


TRANSFORMED: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "gradient": lambda f: jax.grad(lambda x, w: f(x, w).sum(), (0, 1)),
    "gradient of one": lambda f: lambda x, w: jax.grad(lambda w: f(x, w).sum())(w),
    "tangents": lambda f: lambda x, w: jax.jvp(f, (x, w), (x, w)),
    "batch of rows": lambda f: jax.vmap(f, (0, None)),
    "batch of columns": lambda f: jax.vmap(f, (None, 1), 1),
    "gradients of rows": lambda f: jax.vmap(jax.grad(lambda x, w: f(x, w).sum(), 1), (0, None)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed_arrays_keep_their_shardings(name: str, order: str) -> None:
    """Where only arrays say shardings, results outside of `jax.jit` are sharded as those of `jax.jit`."""
    mesh = make_mesh(order)
    arrays = put(X, mesh, "x"), put(W, mesh, None, "y")
    actual, expected = (TRANSFORMED[name](make(layer))(*arrays) for make in (sdy.jit, jax.jit))
    assert_close(actual, expected)
    for left, right in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert left.sharding.is_equivalent_to(right.sharding, left.ndim)
    assert any(not item.sharding.is_fully_replicated for item in jax.tree.leaves(actual))


def test_transformed_arrays_are_not_kept() -> None:
    """A function forgets the arrays of its first call, as those of `jax.jit` do."""
    mesh = make_mesh()
    function = sdy.jit(layer)
    for transformed in (jax.grad(lambda x, w: function(x, w).sum()), jax.vmap(function, (0, None))):
        x, w = put(X, mesh, "x"), put(W, mesh, None, "y")
        known = [weakref.ref(x), weakref.ref(w)]
        transformed(x, w)
        del x, w
        gc.collect()
        assert [array() for array in known] == [None, None]


def test_arrays_that_are_on_no_mesh() -> None:
    """Under `jax.jit` the devices are those of the function, also where no argument is on them."""
    for in_specs in (shardings(make_mesh("shuffled")), (None, None)):
        mesh = {"x": 4, "y": 2}
        specs = (P("x"), P(None, "y")) if in_specs[0] is None else in_specs
        function = sdy.jit(layer, mesh if in_specs[0] is None else None, in_shardings=specs)
        assert_close(jax.jit(lambda x, w, function=function: function(x, w) * 2)(X, W), 2 * layer(X, W))
        gradient = jax.jit(jax.grad(lambda x, w, function=function: function(x, w).sum()))
        assert_close(gradient(X, W), jax.grad(lambda x, w: layer(x, w).sum())(X, W))


def test_forward_mode_and_second_derivatives() -> None:
    """Tangents, gradients of gradients and Hessians are those of JAX."""
    mesh = make_mesh()
    x, w = put(X, mesh, "x"), put(W, mesh, None, "y")
    function = sdy.jit(layer, in_shardings=shardings(mesh))
    assert_close(jax.jvp(function, (x, w), (x, 2 * w)), jax.jvp(layer, (X, W), (X, 2 * W)))

    def norm_of_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, w: (jax.grad(lambda x: function(x, w).sum())(x) ** 2).sum()

    assert_close(jax.grad(norm_of_gradient(function))(x, w), jax.grad(norm_of_gradient(layer))(X, W), rtol=1e-3)
    small = X[:2, :4]
    square = lambda v: jnp.sin(v).sum() ** 2  # noqa: E731
    sharded = sdy.jit(square, in_shardings=(NamedSharding(mesh, P("y")),))
    assert_close(jax.hessian(sharded)(small), jax.hessian(square)(small))


@pytest.mark.parametrize("is_given", [False, True])
def test_batches_of_scalars(is_given: bool) -> None:
    """A scalar gets a first dimension, whether its sharding is known or not; batches nest."""
    mesh = make_mesh()
    rows, known = put(X[0], mesh, "x"), (NamedSharding(mesh, P()),) * 2 if is_given else None
    function = sdy.jit(lambda v, w: jnp.sin(v) * w, mesh, in_shardings=known)
    assert_close(jax.vmap(function, (0, None))(rows, 2.0), jnp.sin(X[0]) * 2)
    nested = jax.vmap(jax.vmap(function, (0, None)), (None, 0))
    assert_close(nested(rows, rows), jnp.outer(X[0], jnp.sin(X[0])))


def test_batches() -> None:
    """`jax.vmap` propagates the batched function, and its gradient."""
    mesh = make_mesh()
    x, w = put(X, mesh, "x"), put(W, mesh, None, "y")
    function = sdy.jit(layer, in_shardings=(NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "y"))))
    assert_close(jax.vmap(function, (0, None))(x, w), layer(X, W))
    assert_close(jax.jit(jax.vmap(function, (1, None), 1))(x.T, w), layer(X, W).T)

    def gradients(function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.vmap(jax.grad(lambda v, w: function(v, w).sum()), (0, None))

    assert_close(gradients(function)(x, w), gradients(layer)(X, W))


def test_derivatives_that_the_user_gives() -> None:
    """A function with `jax.custom_vjp` keeps its own derivative."""

    @jax.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, g: (3 * x * g,))
    mesh = make_mesh()
    function = sdy.jit(lambda x: square(jnp.sin(x)).sum(), in_shardings=(NamedSharding(mesh, P("x")),))
    assert_close(jax.grad(function)(put(X, mesh, "x")), 3 * np.sin(X) * np.cos(X))


def test_integers_and_keys() -> None:
    """Arguments and results without a derivative go along, and keys of random numbers stay keys."""
    mesh = make_mesh()
    x = put(X, mesh, "x")
    rows = sdy.jit(lambda x, i: (jnp.sin(x)[i].sum(), i + 1))
    number = jnp.array([1, 2])
    assert_close(jax.grad(lambda x: rows(x, number)[0])(x), jax.grad(lambda x: jnp.sin(x)[number].sum())(X))
    key = jax.random.key(0)
    noisy = sdy.jit(lambda key, x: (jax.random.split(key)[0], x + jax.random.normal(key, x.shape)))
    split, actual = jax.jit(lambda key, x: noisy(key, x))(key, x)
    assert_close(actual, X + jax.random.normal(key, X.shape))
    assert jax.random.key_data(split).tolist() == jax.random.key_data(jax.random.split(key)[0]).tolist()


def test_inside_a_shard_map_over_other_axes() -> None:
    """The function is propagated over the axes that are free, and so are its gradients."""
    mesh = make_mesh()
    x, w = put(X, mesh, "x"), put(W, mesh)
    function = sdy.jit(layer, in_shardings=(P(), P(None, "y")))
    mapped = jax.shard_map(
        lambda x, w: function(x, w), mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), axis_names={"x"}
    )
    assert_close(jax.jit(mapped)(x, w), layer(X, W))
    actual = jax.jit(jax.grad(lambda x, w: mapped(x, w).sum(), (0, 1)))(x, w)
    assert_close(actual, jax.grad(lambda x, w: layer(x, w).sum(), (0, 1))(X, W))


def test_types_that_say_shardings() -> None:
    """Over explicit axes arguments bring their shardings along while JAX traces, and results have theirs."""
    mesh = make_mesh(type_=AxisType.Explicit)
    x, w = put(X, mesh, "x"), put(W, mesh, None, "y")
    function = sdy.jit(layer)
    types = []

    def outer(x: Any, w: Any) -> Any:
        result = function(x, w)
        types.append(jax.typeof(result).sharding.spec)
        return result.sum()

    with jax.set_mesh(mesh):
        assert_close(jax.jit(outer)(x, w), layer(X, W).sum())
        actual = jax.jit(jax.grad(outer, (0, 1)))(x, w)
    assert types[0] == P("x", "y")
    assert_close(actual, jax.grad(lambda x, w: layer(x, w).sum(), (0, 1))(X, W))


def transformer(params: Any, tokens: Any) -> Any:
    """Return the loss of a small transformer whose layers are scanned."""
    x = params["embedding"][tokens]

    def block(x: Any, p: Any) -> Any:
        heads = [(x @ p[name]).reshape(*x.shape[:2], 4, 8) for name in ("q", "k", "v")]
        scores = jnp.einsum("bshd,bthd->bhst", heads[0], heads[1]) / 8**0.5
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
        attended = jnp.einsum("bhst,bthd->bshd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), heads[2])
        x = x + attended.reshape(x.shape) @ p["o"]
        return x + jax.nn.gelu(x @ p["up"]) @ p["down"], None

    x, _ = jax.lax.scan(block, x, params["layers"])
    logits = x @ params["embedding"].T
    return -jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], -1).mean()


def transformer_arguments(mesh: Mesh) -> tuple[Any, Any, Any]:
    """Return parameters and tokens, and the shardings of both."""
    random = np.random.default_rng(0)
    shapes = {"q": (32, 32), "k": (32, 32), "v": (32, 32), "o": (32, 32), "up": (32, 64), "down": (64, 32)}
    columns = {"q": P(None, None, "y"), "k": P(None, None, "y"), "v": P(None, None, "y"), "up": P(None, None, "y")}
    rows = {"o": P(None, "y"), "down": P(None, "y")}
    params = {
        "embedding": random.standard_normal((64, 32)).astype("float32") / 8,
        "layers": {name: random.standard_normal((3, *shape)).astype("float32") / 8 for name, shape in shapes.items()},
    }
    specs = {"embedding": P("y"), "layers": {**columns, **rows}}
    named = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda item: isinstance(item, P))
    return params, random.integers(0, 64, (8, 12)), (named, NamedSharding(mesh, P("x")))


@pytest.mark.parametrize("order", ORDERS)
def test_the_gradient_of_a_scanned_transformer(order: str) -> None:
    """The gradient with the function propagated here is that of JAX without shardings."""
    mesh = make_mesh(order)
    params, tokens, in_specs = transformer_arguments(mesh)
    function = sdy.jit(transformer, in_shardings=in_specs)
    actual = jax.jit(jax.value_and_grad(function))(*jax.device_put((params, tokens), in_specs))
    assert_close(actual, jax.jit(jax.value_and_grad(transformer))(params, tokens), rtol=2e-3)


def test_a_training_step_over_a_shuffled_mesh() -> None:
    """A step that holds its own gradient is propagated as a whole, and its parameters stay where they are."""
    mesh = make_mesh("shuffled")
    params, tokens, in_specs = transformer_arguments(mesh)

    def step(params: Any, tokens: Any) -> Any:
        loss, gradient = jax.value_and_grad(transformer)(params, tokens)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), loss

    sharded = sdy.jit(step, in_shardings=in_specs, out_shardings=(in_specs[0], NamedSharding(mesh, P())))
    actual, expected = jax.device_put((params, tokens), in_specs)[0], params
    for _ in range(3):
        actual, loss = sharded(actual, jax.device_put(tokens, in_specs[1]))
        expected, wanted_loss = jax.jit(step)(expected, tokens)
        assert_close(loss, wanted_loss, rtol=1e-4)
    assert_close(actual, expected, rtol=2e-3)
    assert actual["embedding"].sharding.mesh == mesh
    assert actual["embedding"].sharding.spec == P("y", None)
