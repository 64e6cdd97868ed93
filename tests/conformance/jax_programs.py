"""Programs of JAX for eight devices, each with its arguments and how they are sharded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from attrs import frozen
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))


@frozen
class JaxProgram:
    """A function to jit, its arguments, their specs, and the arguments it may donate."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    specs: tuple[P, ...]
    donated: tuple[int, ...] = ()
    out_specs: Any = None


def _random(*shape: int, seed: int = 0, scale: float = 0.5) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float32)


def _constrain(value: Any, *spec: Any) -> Any:
    return lax.with_sharding_constraint(value, NamedSharding(MESH, P(*spec)))


def _keep(value: Any, *spec: Any) -> Any:
    """Constrain some dimensions and leave the others open."""
    return _constrain(value, *(P.UNCONSTRAINED if name == "?" else name for name in spec))


def _mlp(x: Any, w: Any) -> Any:
    return jnp.tanh(x @ w)


def scan_over_sharded_weights() -> JaxProgram:
    """A scan whose weights are sharded along their columns."""

    def run(x: Any, weights: Any) -> Any:
        return lax.scan(lambda carry, w: (_mlp(carry, w), carry.sum()), x, weights)

    return JaxProgram(run, (_random(16, 32), _random(6, 32, 32)), (P("data", None), P(None, None, "model")))


def scan_over_weights_sharded_by_layer() -> JaxProgram:
    """A scan along a dimension that is sharded itself."""

    def run(x: Any, weights: Any) -> Any:
        return lax.scan(lambda carry, w: (_mlp(carry, w), None), x, weights)[0]

    return JaxProgram(run, (_random(16, 32), _random(8, 32, 32)), (P("data", None), P("data", "model", None)))


def scan_over_blocks_with_calls() -> JaxProgram:
    """A scan over four blocks, each a jitted function that calls another."""

    @jax.jit
    def norm(x: Any) -> Any:
        return x / (1e-3 + jnp.sqrt((x * x).mean(-1, keepdims=True)))

    @jax.jit
    def block(x: Any, w: Any) -> Any:
        return x + norm(jax.nn.gelu(norm(x) @ w["up"]) @ w["down"])

    def run(x: Any, weights: Any) -> Any:
        y, _ = lax.scan(lambda carry, w: (block(carry, w), None), x, weights)
        return (y * y).sum()

    weights = {"up": _random(4, 32, 64, scale=0.1), "down": _random(4, 64, 32, scale=0.1)}
    specs = {"up": P(None, None, "model"), "down": P(None, "model", None)}
    return JaxProgram(jax.value_and_grad(run, argnums=1), (_random(16, 32), weights), (P("data", None), specs))


def remat_with_constraints() -> JaxProgram:
    """The gradient of a rematerialized loop with a constraint in its body."""

    @jax.checkpoint
    def block(x: Any, w: Any) -> Any:
        return _constrain(_mlp(_keep(x, "data", "?"), w), "data", None)

    def run(w: Any, x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, y: block(y, w), x).sum()

    def scanned(w: Any, x: Any) -> Any:
        return lax.scan(lambda y, _: (block(y, w), None), x, None, length=3)[0].sum() + run(w, x)

    return JaxProgram(jax.grad(scanned), (_random(32, 32), _random(8, 32)), (P(None, "model"), P("data", None)))


def while_with_invariants() -> JaxProgram:
    """A while loop that carries values it never changes, and uses others from outside."""

    def run(x: Any, w: Any, b: Any) -> Any:
        def body(state: Any) -> Any:
            i, y, carried, other = state
            return i + 1, jnp.tanh(y @ carried + b) + other.sum(), carried, other

        return lax.while_loop(lambda state: (state[0] < 4) & (state[1].sum() < 1e6), body, (0, x, w, b))

    specs = (P("data", None), P(None, "model"), P("model"))
    return JaxProgram(run, (_random(8, 16), _random(16, 16), _random(16)), specs)


def while_that_swaps() -> JaxProgram:
    """A loop whose two values change places, sharded differently at the start."""

    def run(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, state: (state[1] * 2 + i, state[0] - i), (x, y))

    return JaxProgram(run, (_random(8, 8), _random(8, 8, seed=1)), (P("data", None), P(None, "model")))


def nested_loops() -> JaxProgram:
    """A while loop in a scan in a jitted function."""

    @jax.jit
    def refine(x: Any, w: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, jnp.sin(s[1] @ w)), (jnp.int32(0), x))[1]

    def run(x: Any, ws: Any) -> Any:
        return lax.scan(lambda c, w: (refine(c, w), c[0]), x, ws)

    return JaxProgram(run, (_random(8, 16), _random(3, 16, 16)), (P("data", "model"), P(None, "model", None)))


def conditionals() -> JaxProgram:
    """Branches of a cond and a switch that use values from outside and are sharded differently."""

    def run(i: Any, x: Any, w: Any) -> Any:
        y = lax.cond(i > 1, lambda: x @ w, lambda: _constrain(x * 2, None, "model"))
        return lax.switch(i, [lambda v: v.T, lambda v: jnp.cos(v), lambda v: v @ w], y), y

    return JaxProgram(run, (np.int32(2), _random(16, 16), _random(16, 16)), (P(), P("data", None), P(None, "model")))


def reshards_back_and_forth() -> JaxProgram:
    """A chain of constraints that contradict each other."""

    def run(x: Any) -> Any:
        for spec in (("data", None), (None, "data"), ("model", "data"), (("data", "model"), None), (None, None)):
            x = _constrain(jnp.sin(x), *spec)
        return x, x.sum(0)

    return JaxProgram(run, (_random(16, 16),), (P(None, "model"),))


def uneven_shapes() -> JaxProgram:
    """Dimensions that the axes do not divide, inside the program."""

    def run(x: Any, w: Any) -> Any:
        y = _keep(x[:, :7] @ w[:7], "data", "?")
        return jnp.concatenate([y, y[:3]]).sum(1), jnp.pad(y, ((0, 1), (1, 0)))[::2]

    return JaxProgram(run, (_random(12, 10), _random(10, 6)), (P("data", None), P(None, "model")))


def shard_map_matmul() -> JaxProgram:
    """A matrix product written per device, with a sum over one axis."""

    def local(x: Any, w: Any) -> Any:
        return lax.psum(x @ w, "model")

    mapped = jax.shard_map(local, mesh=MESH, in_specs=(P("data", "model"), P("model", None)), out_specs=P("data", None))

    def run(x: Any, w: Any) -> Any:
        return jnp.sin(mapped(x * 2, w)).sum(0)

    return JaxProgram(run, (_random(8, 16), _random(16, 4)), (P("data", None), P(None, None)))


def shard_map_partial_auto() -> JaxProgram:
    """A computation that is manual along one axis, with a loop and a constraint along the other."""

    def local(x: Any, w: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            return lax.with_sharding_constraint(jnp.tanh(carry @ w), P(None, "model")), None

        return lax.scan(step, x + lax.axis_index("data"), None, length=2)[0]

    mapped = jax.shard_map(
        local, mesh=MESH, in_specs=(P("data"), P()), out_specs=P("data"), axis_names={"data"}, check_vma=False
    )
    return JaxProgram(lambda x, w: mapped(x, w) + 1, (_random(8, 16), _random(16, 16)), (P("data"), P(None, "model")))


def shard_map_ring() -> JaxProgram:
    """A ring of permutes, differentiated."""

    def local(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            moved = lax.ppermute(carry[0], "data", [(i, (i + 1) % 4) for i in range(4)])
            return (moved, carry[1] + moved * x), None

        return lax.scan(step, (x, jnp.zeros_like(x)), None, length=4)[0][1]

    mapped = jax.shard_map(local, mesh=MESH, in_specs=P("data", "model"), out_specs=P("data", "model"), check_vma=False)
    return JaxProgram(jax.grad(lambda x: mapped(x).sum()), (_random(8, 8),), (P("data", None),))


def mixture_of_experts() -> JaxProgram:
    """Tokens that go to the best of four experts, which are sharded."""

    def run(x: Any, router: Any, up: Any, down: Any) -> Any:
        gates = jax.nn.softmax(x @ router)
        weight, chosen = lax.top_k(gates, 2)
        dispatch = (jax.nn.one_hot(chosen, 4) * weight[..., None]).sum(1)
        hidden = jax.nn.relu(jnp.einsum("tec,ecf->tef", dispatch[..., None] * x[:, None], up))
        return jnp.einsum("tef,efc->tc", _keep(hidden, "?", "data", "?"), down), chosen

    arguments = (_random(32, 16), _random(16, 4), _random(4, 16, 32), _random(4, 32, 16))
    return JaxProgram(run, arguments, (P("data", None), P(), P("data", None, "model"), P("data", "model", None)))


def convolutions() -> JaxProgram:
    """A small convolutional net with pooling, and its gradient."""

    def run(w: Any, image: Any) -> Any:
        y = lax.conv_general_dilated(image, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return (y**2).sum()

    arguments = (_random(3, 3, 4, 8), _random(8, 16, 16, 4))
    return JaxProgram(jax.value_and_grad(run), arguments, (P(None, None, None, "model"), P("data", None, None, None)))


def spectra() -> JaxProgram:
    """Fourier transforms and complex numbers."""

    def run(x: Any) -> Any:
        y = jnp.fft.rfft(x)
        return jnp.fft.irfft(y * jnp.conj(y)), jnp.abs(jnp.fft.fft2(x + 1j)), y

    return JaxProgram(run, (_random(8, 16),), (P("data", "model"),))


def sorting() -> JaxProgram:
    """Sorts along sharded and other dimensions, top-k, ranks, cumulative sums."""

    def run(x: Any) -> Any:
        values, indices = lax.top_k(x, 3)
        return jnp.sort(x, 0), jnp.argsort(x, 1), values, indices, jnp.cumsum(x, 0), jnp.searchsorted(x[0], x[1])

    return JaxProgram(run, (_random(16, 32),), (P("data", "model"),))


def random_numbers() -> JaxProgram:
    """Keys as arguments and as values: splits, folds, normal numbers, dropout, a permutation."""

    def run(key: Any, x: Any) -> Any:
        first, second = jax.random.split(jax.random.wrap_key_data(key))
        mask = _constrain(jax.random.bernoulli(first, 0.5, x.shape), "data", "model")
        noise = jax.random.normal(jax.random.fold_in(second, 3), x.shape)
        return jnp.where(mask, x, 0) + noise, jax.random.key_data(second), jax.random.permutation(first, x)

    return JaxProgram(run, (np.array([1, 2], np.uint32), _random(8, 16)), (P(), P("data", None)))


def custom_derivatives() -> JaxProgram:
    """A function with its own vjp, in a mapped function, in a gradient."""

    @jax.custom_vjp
    def clip(x: Any) -> Any:
        return jnp.clip(x, -1, 1)

    clip.defvjp(lambda x: (clip(x), x), lambda x, g: (g * (jnp.abs(x) < 1),))

    def run(w: Any, x: Any) -> Any:
        return jax.vmap(lambda row: (clip(row @ w) ** 2).sum())(x).mean()

    return JaxProgram(jax.jit(jax.grad(run)), (_random(6, 4), _random(8, 6)), (P(None, "model"), P("data", None)))


def gathers_and_scatters() -> JaxProgram:
    """Look-ups in a sharded table, updates of it, slices at computed places."""

    def run(table: Any, ids: Any, start: Any) -> Any:
        rows = table[ids]
        updated = table.at[ids].add(rows * 2).at[3].set(0)
        return rows, updated, lax.dynamic_update_slice(table, rows[:2], (start, 0)), jax.ops.segment_sum(rows, ids, 16)

    arguments = (_random(16, 8), np.array([3, 1, 15, 0, 7, 3, 2, 9], np.int32), np.int32(5))
    return JaxProgram(run, arguments, (P("data", "model"), P("data"), P()))


def donated_state() -> JaxProgram:
    """A training step that gives its parameters and its momentum away, one of them sharded differently afterwards."""

    def run(params: Any, momentum: Any, x: Any) -> Any:
        gradient = jax.grad(lambda p: (jnp.tanh(x @ p) ** 2).mean())(params)
        momentum = _constrain(0.9 * momentum + gradient, "data", "model")
        return params - 0.1 * momentum, momentum

    arguments = (_random(16, 16), _random(16, 16, seed=1), _random(8, 16))
    return JaxProgram(run, arguments, (P(None, "model"), P("model", None), P("data", None)), (0, 1))


def out_shardings() -> JaxProgram:
    """Results with shardings of their own, one of them replicated."""
    specs = (P("model", "data"), P(None))
    return JaxProgram(
        lambda x, w: (x @ w, (x @ w).sum(0)), (_random(8, 16), _random(16, 8)), (P("data"), P(None, "model")), (), specs
    )


def many_dtypes() -> JaxProgram:
    """Arguments of small, large, signed, unsigned, logical and complex elements."""
    dtypes = ("bfloat16", "float16", "int8", "uint8", "int16", "uint32", "bool", "complex64", "float8_e4m3fn", "int4")
    arguments = tuple(np.ones((8, 4), jnp.dtype(name)) for name in dtypes)

    def run(*arrays: Any) -> Any:
        return [jnp.concatenate([array, array[::-1]]).T for array in arrays]

    return JaxProgram(run, arguments, (P("data", None),) * len(arguments))


def barriers_and_residuals() -> JaxProgram:
    """Optimization barriers, a value that is returned as it came, and one that nobody uses."""

    def run(x: Any, y: Any, unused: Any) -> Any:
        a, b = lax.optimization_barrier((x * 2, y))
        return a + b.T, y, jnp.zeros((8, 8)), lax.optimization_barrier(x)

    arguments = (_random(8, 8), _random(8, 8, seed=1), _random(4))
    return JaxProgram(run, arguments, (P("data", None), P("model", None), P()))


def attention_with_cache() -> JaxProgram:
    """One step of a decoder: a cache that is sharded along the sequence, updated in place, attended to."""

    def run(cache: Any, query: Any, position: Any) -> Any:
        cache = lax.dynamic_update_slice(cache, query[:, None], (0, position, 0, 0))
        scores = jnp.einsum("bhd,bshd->bhs", query, cache) / 4
        scores = jnp.where(jnp.arange(16) <= position, scores, -1e9)
        return jnp.einsum("bhs,bshd->bhd", jax.nn.softmax(scores), cache), cache

    arguments = (_random(4, 16, 2, 8), _random(4, 2, 8), np.int32(5))
    return JaxProgram(run, arguments, (P(None, "data", "model", None), P(None, "model", None), P()), (0,))


def linear_algebra() -> JaxProgram:
    """Factorizations, which are calls of a library on the host."""

    def run(a: Any, b: Any) -> Any:
        definite = a @ a.T + 8 * jnp.eye(8)
        return jnp.linalg.cholesky(definite), jnp.linalg.solve(definite, b), jnp.linalg.eigh(definite)[0]

    return JaxProgram(run, (_random(8, 8), _random(8, 4)), (P("data", None), P(None, "model")))


def associative_scans() -> JaxProgram:
    """A linear recurrence as an associative scan, mapped over a sharded batch."""

    def run(a: Any, x: Any) -> Any:
        def combine(first: Any, other: Any) -> Any:
            return first[0] * other[0], first[1] * other[0] + other[1]

        return lax.associative_scan(combine, (a, x), axis=1)[1]

    return JaxProgram(run, (_random(8, 16, 4), _random(8, 16, 4, seed=1)), (P("data", None, "model"), P(None, "data")))


def without_results_or_arguments() -> JaxProgram:
    """A program that takes nothing."""
    return JaxProgram(partial(lambda: (jnp.arange(16.0).reshape(4, 4), jnp.ones((3,)))), (), ())


PROGRAMS: tuple[Callable[[], JaxProgram], ...] = (
    scan_over_sharded_weights,
    scan_over_weights_sharded_by_layer,
    scan_over_blocks_with_calls,
    remat_with_constraints,
    while_with_invariants,
    while_that_swaps,
    nested_loops,
    conditionals,
    reshards_back_and_forth,
    uneven_shapes,
    shard_map_matmul,
    shard_map_partial_auto,
    shard_map_ring,
    mixture_of_experts,
    convolutions,
    spectra,
    sorting,
    random_numbers,
    custom_derivatives,
    gathers_and_scatters,
    donated_state,
    out_shardings,
    many_dtypes,
    barriers_and_residuals,
    attention_with_cache,
    linear_algebra,
    associative_scans,
    without_results_or_arguments,
)
"""All of them."""
