"""Compare schedules on one training step of a transformer block and of a mixture of experts.

Batches are split over the mesh axis ``data``; so are experts, and weights, which are also split over ``model``. Only
inputs carry shardings: what the ops in between get is a matter of the order in which they propagate.

    pip install 'shardy_py[cli,jax,plot]'
    python examples/compare_schedules.py [--random 20] [--machine h100-8] [--jobs 2] [--out FOLDER]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

from shardy_py.cost.report.comparison import print_comparison
from shardy_py.cost.report.plots import draw_comparison
from shardy_py.cost.sweeps.comparison import compare_schedules

SCHEDULES = ("default", "flat", "elementwise-first", "contractions-first", "forward-only", "reversed")
MESH = AbstractMesh((4, 2), ("data", "model"))
BATCH, LENGTH, WIDTH, HEADS, HIDDEN, EXPERTS, CAPACITY = 32, 512, 1024, 16, 4096, 8, 1024

BLOCK = {
    "norm1": ((WIDTH,), P()),
    "query": ((WIDTH, HEADS, WIDTH // HEADS), P("data", "model")),
    "key": ((WIDTH, HEADS, WIDTH // HEADS), P("data", "model")),
    "value": ((WIDTH, HEADS, WIDTH // HEADS), P("data", "model")),
    "out": ((HEADS, WIDTH // HEADS, WIDTH), P("model", None, "data")),
    "norm2": ((WIDTH,), P()),
    "up": ((WIDTH, HIDDEN), P("data", "model")),
    "down": ((HIDDEN, WIDTH), P("model", "data")),
}
MIXTURE = {
    "norm": ((WIDTH,), P()),
    "router": ((WIDTH, EXPERTS), P()),
    "up": ((EXPERTS, WIDTH, HIDDEN), P("data", None, "model")),
    "down": ((EXPERTS, HIDDEN, WIDTH), P("data", "model")),
}


def normalize(x: jax.Array, scale: jax.Array) -> jax.Array:
    """Root mean square normalization over the last dimension."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def transformer_block(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Causal self-attention with several heads, then a feed-forward layer."""
    y = normalize(x, weights["norm1"])
    query, key, value = (jnp.einsum("btd,dhk->bthk", y, weights[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bthk,bshk->bhts", query, key) / jnp.sqrt(WIDTH / HEADS)
    steps = jnp.arange(LENGTH)
    scores = jnp.where(steps[:, None] >= steps[None, :], scores, -1e9)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores), value)
    x = x + jnp.einsum("bthk,hkd->btd", mixed, weights["out"])
    return x + jax.nn.gelu(normalize(x, weights["norm2"]) @ weights["up"]) @ weights["down"]


def mixture_of_experts(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Each token goes to the expert its router prefers, as long as that has room."""
    tokens = normalize(x, weights["norm"]).reshape(BATCH * LENGTH, WIDTH)
    gates = jax.nn.softmax(tokens @ weights["router"])
    chosen = jax.nn.one_hot(jnp.argmax(gates, axis=-1), EXPERTS)
    place = jnp.cumsum(chosen, axis=0) * chosen - 1
    dispatch = jax.nn.one_hot(place.astype(jnp.int32), CAPACITY) * chosen[..., None]
    inputs = jnp.einsum("nec,nd->ecd", dispatch, tokens)
    outputs = jnp.einsum(
        "ech,ehd->ecd", jax.nn.gelu(jnp.einsum("ecd,edh->ech", inputs, weights["up"])), weights["down"]
    )
    mixed = jnp.einsum("nec,ecd->nd", dispatch * gates[..., None], outputs)
    return x + mixed.reshape(BATCH, LENGTH, WIDTH)


def train_step(layer: Callable[..., jax.Array], parts: dict[str, Any]) -> str:
    """Return one step of gradient descent as MLIR text."""

    def step(weights: dict[str, jax.Array], x: jax.Array) -> dict[str, jax.Array]:
        gradients = jax.grad(lambda given: jnp.mean(layer(given, x) ** 2))(weights)
        return jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients)

    weights = {name: jax.ShapeDtypeStruct(shape, jnp.bfloat16) for name, (shape, _) in parts.items()}
    specs = {name: NamedSharding(MESH, spec) for name, (_, spec) in parts.items()}
    x = jax.ShapeDtypeStruct((BATCH, LENGTH, WIDTH), jnp.bfloat16)
    jitted = jax.jit(step, in_shardings=(specs, NamedSharding(MESH, P("data"))))
    return jitted.trace(weights, x).lower(lowering_platforms=("cpu",)).as_text()


def main() -> None:
    """Print a table for each program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--random", type=int, default=4, help="random schedules besides the built-in ones")
    parser.add_argument("--machine", default="h100-8", help="a machine by name, or a TOML file")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="a folder for the programs and for pictures")
    given = parser.parse_args()
    for layer, parts in ((transformer_block, BLOCK), (mixture_of_experts, MIXTURE)):
        text = train_step(layer, parts)
        comparison = compare_schedules(text, SCHEDULES, machine=given.machine, random=given.random, jobs=given.jobs)
        print(layer.__name__.replace("_", " "))
        print_comparison(comparison)
        if given.out:
            given.out.mkdir(exist_ok=True)
            (given.out / f"{layer.__name__}.mlir").write_text(text)
            (given.out / f"{layer.__name__}.svg").write_bytes(draw_comparison(comparison, "svg"))


if __name__ == "__main__":
    main()
