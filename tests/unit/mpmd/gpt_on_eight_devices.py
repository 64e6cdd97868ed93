"""A GPT of eight layers on four stages of two devices; run by `test_jit` with eight host devices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

import shardy_py as sdy

STAGES, LAYERS, MICROBATCHES, STEPS = 4, 8, 8, 5
ROWS, LENGTH, WIDTH, HEADS, WORDS = 2, 4, 8, 2, 16
TOPOLOGY = {f"m{number}": {"x": 2} for number in range(STAGES)}


def layer(weights: Any, x: Any) -> Any:
    """Return attention and a feed-forward part, each added to what goes in."""

    def split(y: Any) -> Any:
        return y.reshape(ROWS, LENGTH, HEADS, WIDTH // HEADS)

    query, key, value = (split(x @ weights[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / (WIDTH // HEADS) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value).reshape(ROWS, LENGTH, WIDTH)
    x = x + mixed @ weights["out"]
    return x + jax.nn.gelu(x @ weights["up"]) @ weights["down"]


def stage(number: int) -> Any:
    """Return the layers of a stage, the first with the embedding, as a named computation."""

    @sdy.mpmd.named_computation(name=f"stage{number}")
    def run(weights: Any, x: Any) -> Any:
        if number == 0:
            x = weights["words"][x]
        for item in weights["layers"]:
            x = layer(item, x)
        return x

    return run


@sdy.mpmd.named_computation(name="loss")
def cross_entropy(weights: Any, x: Any, targets: Any) -> Any:
    """Return the loss of the next words."""
    scores = jax.nn.log_softmax(x @ weights)
    return -jnp.take_along_axis(scores, targets[..., None], -1).mean()


RUNS = [stage(number) for number in range(STAGES)]


def loss(weights: Any, words: Any) -> Any:
    """Return the loss of a microbatch."""
    x: Any = words[:, :-1]
    for run, part in zip(RUNS, weights["stages"], strict=True):
        x = run(part, x)
    return cross_entropy(weights["head"], x, words[:, 1:])


def step(weights: Any, batches: Any) -> Any:
    """Return the weights after a step of gradient descent, and the mean loss."""
    total, gradients = 0.0, jax.tree.map(jnp.zeros_like, weights)
    for number, batch in enumerate(batches):
        value, more = sdy.mpmd.call(jax.value_and_grad(loss), call_counter=number)(weights, batch)
        total, gradients = total + value, jax.tree.map(jnp.add, gradients, more)
    weights = jax.tree.map(lambda weight, gradient: weight - 0.02 * gradient, weights, gradients)
    return weights, total / MICROBATCHES


def step_on_one_device(weights: Any, batches: Any) -> Any:
    """Return what `step` does, with one program for all microbatches."""
    total, gradients = 0.0, jax.tree.map(jnp.zeros_like, weights)
    for batch in batches:
        value, more = gradient_of_loss(weights, batch)
        total, gradients = total + value, jax.tree.map(jnp.add, gradients, more)
    return jax.tree.map(lambda weight, gradient: weight - 0.02 * gradient, weights, gradients), total / MICROBATCHES


gradient_of_loss = jax.jit(jax.value_and_grad(loss))


def initial_weights() -> Any:
    """Return random weights."""
    keys = iter(jax.random.split(jax.random.key(0), 64))

    def matrix(*shape: int) -> Any:
        return jax.random.normal(next(keys), shape) * 0.3 / shape[0] ** 0.5

    sizes = {"query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH), "value": (WIDTH, WIDTH), "out": (WIDTH, WIDTH)}
    sizes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    stages: list[Any] = [
        {"layers": [{name: matrix(*shape) for name, shape in sizes.items()} for _ in range(LAYERS // STAGES)]}
        for _ in range(STAGES)
    ]
    stages[0]["words"] = matrix(WORDS, WIDTH)
    return {"stages": stages, "head": matrix(WIDTH, WORDS)}


def test_five_steps_lose_what_one_device_loses() -> None:
    """Losses of five steps are equal to 1e-5, with the hidden size of each layer cut over two devices."""
    weights = initial_weights()
    batches = list(jax.random.randint(jax.random.key(1), (MICROBATCHES, ROWS, LENGTH + 1), 0, WORDS))
    specs = jax.tree.map(lambda _: P(), weights)
    for part in specs["stages"]:
        for item in part["layers"]:
            item["up"], item["down"] = P(None, "x"), P("x", None)
    pipeline = sdy.mpmd.jit(
        step,
        topology=TOPOLOGY,
        assignment={f"stage{number}": f"m{number}" for number in range(STAGES)} | {"loss": f"m{STAGES - 1}"},
        schedule="1F1B",
        in_shardings=(specs, P()),
    )
    ours = theirs = weights
    losses = []
    for _ in range(STEPS):
        ours, value = pipeline(ours, batches)
        theirs, expected = step_on_one_device(theirs, batches)
        losses.append(float(value))
        np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert losses[-1] < losses[0]
    assert {device.id for device in ours["head"].devices()} == {6, 7}
