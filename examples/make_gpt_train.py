"""Write gpt_train.mlir: one training step of a small GPT with Adam, sharded inputs, as JAX lowers it.

Batches are split over the mesh axis ``data``, weights over ``model`` as in Megatron: the first matrix of a pair by its
columns, the second by its rows. Only the inputs carry shardings; propagation finds all others.

    pip install 'shardy_py[jax]'
    python examples/make_gpt_train.py [OUT]
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY = 2, 256, 8, 1024, 1024
BATCH, LENGTH = 16, 128
MESH = AbstractMesh((4, 2), ("data", "model"))

LAYER = {
    "norm1": (WIDTH,),
    "query": (WIDTH, HEADS, WIDTH // HEADS),
    "key": (WIDTH, HEADS, WIDTH // HEADS),
    "value": (WIDTH, HEADS, WIDTH // HEADS),
    "out": (HEADS, WIDTH // HEADS, WIDTH),
    "norm2": (WIDTH,),
    "up": (WIDTH, HIDDEN),
    "down": (HIDDEN, WIDTH),
}
LAYER_SPECS = {
    "norm1": P(),
    "query": P(None, "model"),
    "key": P(None, "model"),
    "value": P(None, "model"),
    "out": P("model"),
    "norm2": P(),
    "up": P(None, "model"),
    "down": P("model"),
}
PARAMETERS = {
    "embedding": (VOCABULARY, WIDTH),
    "position": (LENGTH, WIDTH),
    "layers": [LAYER] * LAYERS,
    "norm": (WIDTH,),
}
PARAMETER_SPECS = {
    "embedding": P("model"),
    "position": P(),
    "layers": [LAYER_SPECS] * LAYERS,
    "norm": P(),
}


def normalize(x, scale):
    """Root mean square normalization over the last dimension."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attend(layer, x):
    """Causal self-attention with several heads."""
    query, key, value = (jnp.einsum("btd,dhk->bthk", x, layer[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bthk,bshk->bhts", query, key) / jnp.sqrt(WIDTH / HEADS)
    steps = jnp.arange(x.shape[1])
    scores = jnp.where(steps[:, None] >= steps[None, :], scores, -1e9)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores), value)
    return jnp.einsum("bthk,hkd->btd", mixed, layer["out"])


def loss(parameters, tokens, targets):
    """Mean cross entropy of the next token."""
    with jax.named_scope("embed"):
        x = parameters["embedding"][tokens] + parameters["position"]
    for number, layer in enumerate(parameters["layers"]):
        with jax.named_scope(f"layer_{number}"):
            with jax.named_scope("attention"):
                x = x + attend(layer, normalize(x, layer["norm1"]))
            with jax.named_scope("mlp"):
                x = x + jax.nn.gelu(normalize(x, layer["norm2"]) @ layer["up"]) @ layer["down"]
    with jax.named_scope("head"):
        logits = normalize(x, parameters["norm"]) @ parameters["embedding"].T
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
        return -jnp.mean(picked)


def train_step(parameters, first, second, step, tokens, targets):
    """One step of Adam: new parameters, new moments, the loss."""
    value, gradients = jax.value_and_grad(loss)(parameters, tokens, targets)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    count = step + 1.0
    scale = 1e-3 * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    parameters = jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), parameters, first, second)
    return parameters, first, second, count, value


def lower(layers: int = LAYERS):
    """Lower the step of a model with so many layers."""
    parameters = {**PARAMETERS, "layers": [LAYER] * layers}
    parameter_specs = {**PARAMETER_SPECS, "layers": [LAYER_SPECS] * layers}
    weights = jax.tree.map(
        lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32), parameters, is_leaf=lambda x: isinstance(x, tuple)
    )
    specs = jax.tree.map(lambda spec: NamedSharding(MESH, spec), parameter_specs, is_leaf=lambda x: isinstance(x, P))
    batch, scalar = NamedSharding(MESH, P("data")), NamedSharding(MESH, P())
    tokens = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    step = jax.jit(train_step, in_shardings=(specs, specs, specs, scalar, batch, batch))
    traced = step.trace(weights, weights, weights, jax.ShapeDtypeStruct((), jnp.float32), tokens, tokens)
    return traced.lower(lowering_platforms=("cpu",))


def main(out: Path) -> None:
    """Write the text of the step."""
    out.write_text(lower().as_text() + "\n")
    print(f"wrote {out}: {out.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("gpt_train.mlir"))
