"""Training steps of a GPT with Adam, as JAX lowers them.

Batches are split over the mesh axis ``data``; weights over ``model`` as in Megatron: the first matrix of a pair by its
columns, the second by its rows. Only arguments carry shardings. What is computed is that of any GPT: embeddings,
root mean square norms, causal attention with several heads, a GELU network, cross entropy, gradients, and
Adam's update of every parameter.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from benchmarks.programs.lowering import MESH, Shape, lower_text, transformer_layer

WIDTH, HEADS, HIDDEN, VOCABULARY = 256, 8, 1024, 1024
BATCH, LENGTH = 16, 128
HEAD = WIDTH // HEADS

LAYER = transformer_layer(WIDTH, HEADS, HIDDEN)
OUTSIDE: dict[str, tuple[Shape, P]] = {
    "embedding": ((VOCABULARY, WIDTH), P("model")),
    "position": ((LENGTH, WIDTH), P()),
    "norm": ((WIDTH,), P()),
}


def gpt_step(layers: int, *, scanned: bool = False) -> str:
    """Return the module of one training step.

    Args:
        layers: How many layers.
        scanned: Whether one loop runs all layers, over stacked parameters; otherwise they are unrolled.
    """

    def step(parameters: Any, first: Any, second: Any, count: Any, tokens: Any, targets: Any) -> Any:
        value, gradients = jax.value_and_grad(_loss)(parameters, tokens, targets)
        count = count + 1.0
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        scale = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        parameters = jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), parameters, first, second)
        return parameters, first, second, count, value

    parameters = OUTSIDE | {"layers": _stacked(layers) if scanned else [LAYER] * layers}
    batch = ((BATCH, LENGTH), P("data"))
    arguments = (parameters, parameters, parameters, ((), P()), batch, batch)
    return lower_text(step, arguments, integers=(4, 5), mesh=MESH)


def gpt_loss(layers: int) -> str:
    """Return the module of the loss alone, its layers unrolled: nearly every op of a small one is of its own kind.

    Args:
        layers: How many layers.
    """
    batch = ((BATCH, LENGTH), P("data"))
    arguments = (OUTSIDE | {"layers": [LAYER] * layers}, batch, batch)
    return lower_text(_loss, arguments, integers=(1, 2), mesh=MESH)


def _loss(parameters: Any, tokens: Any, targets: Any) -> Any:
    x = parameters["embedding"][tokens] + parameters["position"]
    if isinstance(parameters["layers"], dict):
        x, _ = jax.lax.scan(lambda x, layer: (_layer(x, layer), None), x, parameters["layers"])
    else:
        for layer in parameters["layers"]:
            x = _layer(x, layer)
    x = _normalize(x, parameters["norm"])
    logits = x @ parameters["embedding"].T
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return -jnp.mean(picked)


def _stacked(layers: int) -> dict[str, tuple[Shape, P]]:
    return {name: ((layers, *shape), P(None, *spec)) for name, (shape, spec) in LAYER.items()}


def _layer(x: Any, layer: Any) -> Any:
    x = x + _attend(_normalize(x, layer["norm1"]), layer)
    hidden = jax.nn.gelu(_normalize(x, layer["norm2"]) @ layer["up"])
    return x + hidden @ layer["down"]


def _normalize(x: Any, scale: Any) -> Any:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def _attend(x: Any, layer: Any) -> Any:
    query, key, value = (jnp.einsum("btd,dhk->bthk", x, layer[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bthk,bshk->bhts", query, key) / HEAD**0.5
    steps = jnp.arange(LENGTH)
    scores = jnp.where(steps[:, None] >= steps[None, :], scores, -1e9)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores), value)
    return jnp.einsum("bthk,hkd->btd", mixed, layer["out"])
