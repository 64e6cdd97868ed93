"""Programs in JAX that say shardings in every way that lowers differently without the Shardy partitioner."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

MESH = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
OPEN = PartitionSpec.UNCONSTRAINED
constrain = jax.lax.with_sharding_constraint

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
"""Name to a function and the shapes of its arguments, with shardings."""


def spec(*entries: Any) -> PartitionSpec:
    """Return a PartitionSpec."""
    return PartitionSpec(*entries)


def over(*entries: Any) -> NamedSharding:
    """Return a sharding over the mesh."""
    return NamedSharding(MESH, PartitionSpec(*entries))


def array(*shape: int, dtype: Any = jnp.float32, by: Any = None) -> jax.ShapeDtypeStruct:
    """Return the shape of an argument."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=by)


@contextmanager
def partitioner(*, shardy: bool) -> Any:
    """Lower with the Shardy partitioner, or without it."""
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        yield
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)


def lower(name: str, *, shardy: bool, **options: Any) -> Any:
    """Return a lowered program, for eight devices that need not be there."""
    function, arguments = PROGRAMS[name]
    with partitioner(shardy=shardy):
        return jax.jit(function, **options).trace(*arguments).lower(lowering_platforms=("cpu",))


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function with its arguments among the programs."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, arguments
        return function

    return enter


def sharded(function: Callable[..., Any], ins: Any, outs: Any, axes: set[str] | None = None) -> Callable[..., Any]:
    """Return a function over shards; over all axes by default."""
    names = {"x", "y"} if axes is None else axes
    return jax.shard_map(function, mesh=MESH, in_specs=ins, out_specs=outs, axis_names=names, check_vma=False)


@program([array(32, 64, by=over(None, "y")), array(64, 32, by=over("y", None))], array(16, 32, by=over("x")))
def training_step(weights, x):
    """Constraints with unconstrained dimensions, and their gradients."""

    def loss(weights, x):
        for weight in weights:
            x = constrain(jax.nn.relu(x @ weight), over("x", OPEN))
        return jnp.mean(x**2)

    return jax.value_and_grad(loss)(weights, x)


@program(array(16, 32, by=over("x", "y")))
def branches(x):
    """A constraint in one branch."""
    return jax.lax.cond(x.sum() > 0, lambda u: constrain(u * 2, over("x", None)), lambda u: u + 1, x)


@program(array(5, 32, 32, by=over(None, None, "y")), array(16, 32))
def scan_of_weights(weights, x):
    """A loop over sharded weights with a constraint in its body."""

    def body(carry, weight):
        carry = constrain(jnp.tanh(carry @ weight), over("x", "y"))
        return carry, carry.sum()

    return jax.lax.scan(body, x, weights)


@program(array(16, 32))
def loop(x):
    """A dimension over two axes."""
    return jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (constrain(c[0] * 2, over(("x", "y"))), c[1] + 1), (x, 0))


@program(array(16, 32, by=over("x")), array(32, 64, by=over("y")))
def shards(a, b):
    """A function over shards, manual on all axes."""
    return sharded(lambda u, v: jax.lax.psum(u @ v, "y"), (spec("x", "y"), spec("y", None)), spec("x", None))(a, b) * 2


@program(array(16, 32, by=over("x")), array(32, 64, by=over("y")))
def shards_on_one_axis(a, b):
    """A function over shards with a free axis."""
    ins = (spec(None, "y"), spec("y", None))
    return sharded(lambda u, v: jax.lax.psum(u @ v, "y"), ins, spec(None, None), {"y"})(a, b)


@program(array(16, 32, by=over("x")))
def shards_twice(a):
    """A function over shards with two results, called twice."""
    swap = [(0, 1), (1, 0)]
    function = sharded(lambda u: (u * 2, jax.lax.ppermute(u, "x", swap)), spec("x"), (spec("x"), spec("x")))
    u, v = function(a)
    return function(u + v)[0], v


@program()
def shards_of_nothing():
    """A function over shards without arguments."""
    return sharded(lambda: jax.lax.axis_index("x")[None], (), spec("x"))()


@program(array(16, 32, by=over("x")), array(3))
def shards_with_a_replicated_one(a, b):
    """An argument that every shard has whole."""
    return sharded(lambda u, v: u + v.sum(), (spec("x"), spec()), spec("x"))(a, b)


@program(array(16, 32, by=over("x")))
def shards_in_a_loop(a):
    """Shards inside of the body of a loop."""
    function = sharded(lambda u: u * jax.lax.psum(u, "x"), spec("x"), spec("x"))
    return jax.lax.scan(lambda c, _: (function(c), None), a, None, length=3)[0]


@program(array(16, 32, by=over("x")))
def a_loop_in_shards(a):
    """A loop inside of a function over shards."""

    def function(u):
        return jax.lax.scan(lambda c, _: (c * jax.lax.psum(c, "y"), None), u, None, length=3)[0]

    return sharded(function, spec("x", "y"), spec("x", "y"))(a)


@program(array(16, 32, by=over("x")))
def shards_in_shards(a):
    """Shards of shards, each manual on its own axis."""

    def inner(u):
        return jax.lax.psum(u, "y")

    def outer(u):
        ins, outs = spec(None, "y"), spec(None, None)
        return jax.shard_map(inner, in_specs=ins, out_specs=outs, axis_names={"y"}, check_vma=False)(u * 2)

    return sharded(outer, spec("x"), spec("x"), {"x"})(a)


@program(array(16, 32, by=over("x")), array(16, 32))
def alike(a, b):
    """Two values that are sharded alike."""
    from jax.experimental.shard_alike import shard_alike

    a, b = shard_alike(a, b)
    return a + 1, b * 2


@program(array(8, 16, by=over("x")), array(8, 16))
def inner_jit(x, y):
    """A jitted function with shardings of its own."""
    inner = jax.jit(lambda u: jnp.sin(u) @ u.T, in_shardings=over("x", None), out_shardings=over(None, "y"))
    return {"a": inner(x), "b": inner(y)}


@program(array(16, 32, by=over(("y", "x"))))
def replicated(x):
    """A constraint to replicate, axes in another order than the mesh has them."""
    return constrain(x * 2, over())


@program(array(16, 32, by=over("x")), array(4, dtype=jnp.int32))
def indices(x, i):
    """Gathers and sorts."""
    return x[i], jnp.sort(x, 1), jax.lax.top_k(x, 3)


@program(array(16, 32, by=over("x")), array(32, 32, by=over(None, "y")))
def gradients_of_shards_on_one_axis(a, b):
    """Both passes through a function over shards with a free axis that is used inside."""

    def function(u, v):
        return jax.lax.psum(jnp.tanh(u @ v), "x")

    shards = jax.shard_map(function, mesh=MESH, in_specs=(spec("x"), spec()), out_specs=spec(None), axis_names={"x"})
    return jax.grad(lambda a, b: shards(a, b).sum(), argnums=(0, 1))(a, b)


@program(array(4, 16, 32, by=over("x")))
def batched_constraint(a):
    """A constraint under vmap, with an axis for the batch."""
    return jax.vmap(lambda u: constrain(u * 2, over("y")), spmd_axis_name="x")(a)


@program(array(8, 16, 32, by=over("x")), array(32, 96, by=over(None, "y")), array(32, 32, by=over("y")))
def attention(x, qkv, out):
    """A block of a transformer with constraints on heads, rematerialised in its gradient."""

    def block(x):
        parts = jnp.split((x @ qkv).reshape(8, 16, 3, 4, 8), 3, axis=2)
        query, key, value = (constrain(part[:, :, 0], over("x", None, "y", OPEN)) for part in parts)
        return x + jax.nn.dot_product_attention(query, key, value, is_causal=True).reshape(8, 16, 32) @ out

    return jax.grad(lambda x: jax.checkpoint(block)(constrain(x, over("x", OPEN, OPEN))).sum())(x)
