"""Compile programs for eight host devices, and print what XLA says of their memory beside our estimate.

Started by test_memory_analysis.py in a process of its own, since JAX counts its devices once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from shardy_py.cost.session import Session

P = PartitionSpec
MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def product(x: Any, w: Any) -> Any:
    """Multiply two matrices."""
    return x @ w


def scores(q: Any, k: Any, v: Any) -> Any:
    """Attend to all positions."""
    weights = jax.nn.softmax(jnp.einsum("bshd,bthd->bhst", q, k) / 8.0)
    return jnp.einsum("bhst,bthd->bshd", weights, v), weights.max()


def training_step(params: Any, batch: Any) -> Any:
    """Update two layers by the gradient of a loss."""

    def loss(params: Any) -> Any:
        hidden = jax.nn.gelu(batch["x"] @ params["up"] + params["bias"])
        return jnp.mean((hidden @ params["down"] - batch["y"]) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def layers(x: Any, stacked: Any) -> Any:
    """Run a loop over layers."""
    return jax.lax.scan(lambda y, w: (jnp.tanh(y @ w), y.sum()), x, stacked)


def small_types(x: Any, mask: Any, z: Any) -> Any:
    """Return bytes, booleans and complex numbers."""
    return (x + 1, mask & (x > 0), z * 2, x.astype(jnp.bfloat16))


def shape(*sizes: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """Return the type of an array."""
    return jax.ShapeDtypeStruct(sizes, dtype)


PARAMS = {"up": shape(64, 256), "bias": shape(256), "down": shape(256, 64)}
PARAM_SPECS = {"up": P(None, "model"), "bias": P("model"), "down": P("model", None)}
BATCH = {"x": shape(32, 64), "y": shape(32, 64)}
QKV = (shape(8, 16, 4, 32, dtype=jnp.bfloat16),) * 3

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "contracted": (product, (shape(64, 128), shape(128, 32)), (P("data", "model"), P("model", None))),
    "columns": (product, (shape(64, 128), shape(128, 32)), (P("data", None), P(None, "model"))),
    "both_axes": (product, (shape(64, 128), shape(128, 32)), (P(("data", "model"), None), P())),
    "unsharded": (product, (shape(64, 128), shape(128, 32)), (P(), P())),
    "odd_columns": (product, (shape(64, 128), shape(128, 7)), (P("data", None), P())),
    "attention": (scores, QKV, (P("data", None, "model", None),) * 3),
    "attention_replicated_keys": (scores, QKV, (P("data", None, "model"), P(), P("data"))),
    "training_step": (training_step, (PARAMS, BATCH), (PARAM_SPECS, {"x": P("data"), "y": P("data")})),
    "training_step_fsdp": (
        training_step,
        (PARAMS, BATCH),
        ({"up": P("data", "model"), "bias": P(), "down": P("model", "data")}, {"x": P("data"), "y": P("data")}),
    ),
    "layers": (layers, (shape(32, 64), shape(6, 64, 64)), (P("data", None), P(None, None, "model"))),
    "small_types": (
        small_types,
        (shape(16, 24, dtype=jnp.int8), shape(16, 24, dtype=jnp.bool_), shape(24, dtype=jnp.complex64)),
        (P("data", "model"), P("data"), P("model")),
    ),
}


def main() -> None:
    """Print one line of JSON per program."""
    for name, (function, arguments, specs) in PROGRAMS.items():
        shardings = jax.tree.map(lambda spec: NamedSharding(MESH, spec), specs, is_leaf=lambda x: isinstance(x, P))
        lowered = jax.jit(function, in_shardings=shardings).lower(*arguments)
        actual = lowered.compile().memory_analysis()
        cost = Session.open(lowered).evaluate(machine="cpu-8", partitioner="xla").cost
        line = {
            "program": name,
            "arguments": [cost.argument_bytes.value, actual.argument_size_in_bytes],
            "results": [cost.result_bytes.value, actual.output_size_in_bytes],
            "peak": [
                cost.peak_bytes.value,
                actual.argument_size_in_bytes + actual.output_size_in_bytes + actual.temp_size_in_bytes,
            ],
            "num_results": len(jax.tree.leaves(lowered.out_info)),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
