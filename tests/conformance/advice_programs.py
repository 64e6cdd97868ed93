"""Training steps of JAX whose shardings of inputs lead to needless communication, each with one line that mends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = AbstractMesh((4, 2), ("data", "model"))
BATCH, LENGTH, WIDTH, HEADS, GROUPS, VOCABULARY, HIDDEN = 16, 64, 128, 8, 2, 512, 256
TOKENS, EXPERTS, CAPACITY = 4096, 8, 256

Parts = dict[str, tuple[tuple[int, ...], P]]
"""The shape and the sharding of each weight."""

LLAMA: Parts = {
    "embed": ((VOCABULARY, WIDTH), P("model", "data")),
    "norm1": ((WIDTH,), P()),
    "query": ((WIDTH, WIDTH), P("data", "model")),
    "key": ((WIDTH, WIDTH * GROUPS // HEADS), P("data", "model")),
    "value": ((WIDTH, WIDTH * GROUPS // HEADS), P("data", "model")),
    "out": ((WIDTH, WIDTH), P("model", "data")),
    "norm2": ((WIDTH,), P()),
    "gate": ((WIDTH, HIDDEN), P("data", "model")),
    "up": ((WIDTH, HIDDEN), P("data", "model")),
    "down": ((HIDDEN, WIDTH), P("model", "data")),
    "head": ((WIDTH, VOCABULARY), P("data", "model")),
}
MIXTURE: Parts = {
    "norm": ((WIDTH,), P()),
    "router": ((WIDTH, EXPERTS), P()),
    "up": ((EXPERTS, WIDTH, HIDDEN), P("data", None, "model")),
    "down": ((EXPERTS, HIDDEN, WIDTH), P("data", "model")),
}


def _norm(x: Any, scale: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def _attention(weights: dict[str, Any], x: Any) -> Any:
    size = WIDTH // HEADS
    query = (x @ weights["query"]).reshape(BATCH, LENGTH, GROUPS, HEADS // GROUPS, size)
    key, value = ((x @ weights[name]).reshape(BATCH, LENGTH, GROUPS, size) for name in ("key", "value"))
    scores = jnp.einsum("bqghd,bkgd->bghqk", query, key) / size**0.5
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    mixed = jnp.einsum("bghqk,bkgd->bqghd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), value)
    return mixed.reshape(BATCH, LENGTH, WIDTH) @ weights["out"]


def llama_loss(weights: dict[str, Any], tokens: Any, constrain: Callable[[Any], Any]) -> Any:
    """Loss of one layer of LLaMA; what may be constrained is the output of the embedding."""
    x = constrain(weights["embed"][tokens])
    x = x + _attention(weights, _norm(x, weights["norm1"]))
    y = _norm(x, weights["norm2"])
    x = x + (jax.nn.silu(y @ weights["gate"]) * (y @ weights["up"])) @ weights["down"]
    actual = jax.nn.log_softmax(x @ weights["head"])
    return -jnp.mean(jnp.take_along_axis(actual, tokens[..., None], axis=-1))


def mixture_loss(weights: dict[str, Any], x: Any, constrain: Callable[[Any], Any]) -> Any:
    """Loss of a mixture of experts; what may be constrained is the assignment of tokens to experts."""
    tokens = _norm(x, weights["norm"]).reshape(TOKENS, WIDTH)
    gates = jax.nn.softmax(tokens @ weights["router"])
    chosen = jax.nn.one_hot(jnp.argmax(gates, axis=-1), EXPERTS)
    place = jnp.cumsum(chosen, axis=0) * chosen - 1
    dispatch = constrain(jax.nn.one_hot(place.astype(jnp.int32), CAPACITY) * chosen[..., None])
    inputs = jnp.einsum("nec,nd->ecd", dispatch, tokens)
    hidden = jax.nn.gelu(jnp.einsum("ecd,edh->ech", inputs, weights["up"]))
    outputs = jnp.einsum("ech,ehd->ecd", hidden, weights["down"])
    mixed = jnp.einsum("nec,ecd->nd", dispatch * gates[..., None], outputs)
    return jnp.mean((x + mixed.reshape(x.shape)) ** 2)


def llama(constraint: P | None = None) -> str:
    """A step of LLaMA as MLIR text."""
    return _step(llama_loss, LLAMA, jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32), constraint)


def mixture(constraint: P | None = None) -> str:
    """A step of a mixture of experts as MLIR text."""
    x = jax.ShapeDtypeStruct((TOKENS // LENGTH, LENGTH, WIDTH), jnp.bfloat16)
    return _step(mixture_loss, MIXTURE, x, constraint, jnp.bfloat16)


def _step(loss: Callable[..., Any], parts: Parts, data: Any, constraint: P | None, dtype: Any = jnp.float32) -> str:
    def constrain(x: Any) -> Any:
        return x if constraint is None else lax.with_sharding_constraint(x, NamedSharding(MESH, constraint))

    def step(weights: dict[str, Any], inputs: Any) -> dict[str, Any]:
        gradients = jax.grad(loss)(weights, inputs, constrain)
        return jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients)

    weights = {name: jax.ShapeDtypeStruct(shape, dtype) for name, (shape, _) in parts.items()}
    specs = {name: NamedSharding(MESH, spec) for name, (_, spec) in parts.items()}
    jitted = jax.jit(step, in_shardings=(specs, NamedSharding(MESH, P("data"))))
    return jitted.trace(weights, data).lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
