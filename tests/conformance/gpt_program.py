"""A training step of a GPT of two layers, with the shardings that people write by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

MESH = AbstractMesh((4, 2), ("data", "model"))
BATCH, LENGTH, WIDTH, HEADS, LAYERS, VOCABULARY = 32, 128, 256, 8, 2, 1024

SHAPES = {"embed": (VOCABULARY, WIDTH), "head": (WIDTH, VOCABULARY)}
LAYER = {
    "query": (WIDTH, WIDTH),
    "key": (WIDTH, WIDTH),
    "value": (WIDTH, WIDTH),
    "out": (WIDTH, WIDTH),
    "up": (WIDTH, 4 * WIDTH),
    "down": (4 * WIDTH, WIDTH),
}
"""The shape of each weight, and of those that each layer has."""

COLUMNS, ROWS = P(None, "model"), P("model")
MEGATRON = {
    "embed": ROWS,
    "head": COLUMNS,
    "query": COLUMNS,
    "key": COLUMNS,
    "value": COLUMNS,
    "out": ROWS,
    "up": COLUMNS,
    "down": ROWS,
}
"""Products by columns and then by rows; the vocabulary is divided, too."""
FSDP = dict.fromkeys(MEGATRON, P(("data", "model")))
"""Each weight is divided over all devices."""


def _norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def _attention(weights: Mapping[str, Any], x: Any) -> Any:
    size = WIDTH // HEADS
    shape = (BATCH, LENGTH, HEADS, size)
    query, key, value = ((x @ weights[name]).reshape(shape) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / size**0.5
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), value)
    return mixed.reshape(x.shape) @ weights["out"]


def _loss(weights: Mapping[str, Any], tokens: Any, labels: Any) -> Any:
    x = weights["embed"][tokens]
    for layer in range(LAYERS):
        layer_weights = weights[f"layer{layer}"]
        x = x + _attention(layer_weights, _norm(x))
        x = x + jax.nn.gelu(_norm(x) @ layer_weights["up"]) @ layer_weights["down"]
    actual = jax.nn.log_softmax(x @ weights["head"])
    return -jnp.mean(jnp.take_along_axis(actual, labels[..., None], axis=-1))


def gpt(weights: Mapping[str, P] | None = None, batch: P | None = None) -> str:
    """Return a training step as MLIR text.

    Args:
        weights: The sharding of each weight and of what it becomes; None for a program without a mesh.
        batch: The sharding of tokens and labels.
    """

    def step(parameters: Mapping[str, Any], tokens: Any, labels: Any) -> Any:
        loss, gradients = jax.value_and_grad(_loss)(parameters, tokens, labels)
        return loss, jax.tree.map(lambda weight, gradient: weight - 0.001 * gradient, parameters, gradients)

    def parts(of: Any) -> dict[str, Any]:
        layers = {f"layer{number}": {name: of(name) for name in LAYER} for number in range(LAYERS)}
        return {name: of(name) for name in SHAPES} | layers

    shapes = parts(lambda name: jax.ShapeDtypeStruct((SHAPES | LAYER)[name], jnp.float32))
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    options = {}
    if weights is not None and batch is not None:
        weight_shardings = parts(lambda name: NamedSharding(MESH, weights[name]))
        data = NamedSharding(MESH, batch)
        options = {
            "in_shardings": (weight_shardings, data, data),
            "out_shardings": (NamedSharding(MESH, P()), weight_shardings),
        }
    traced = jax.jit(step, **options).trace(shapes, tokens, tokens)
    return traced.lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
