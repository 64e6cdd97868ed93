"""Train a perceptron on eight host devices through ``sdy.jit``; needs the extra `jax`.

python examples/compiler_pipeline/jax_step.py
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

import shardy_py as sdy


def loss(weights, x, y):
    """Mean squared error of a perceptron with one hidden layer."""
    hidden = jax.nn.gelu(x @ weights["up"])
    return jnp.mean((hidden @ weights["down"] - y) ** 2)


def train_step(weights, x, y):
    """One step of gradient descent: new weights, and the loss."""
    value, gradients = jax.value_and_grad(loss)(weights, x, y)
    return jax.tree.map(lambda weight, gradient: weight - 0.5 * gradient, weights, gradients), value


random = np.random.default_rng(0)
weights = {
    "up": random.normal(size=(16, 64)).astype("float32") / 4,
    "down": random.normal(size=(64, 16)).astype("float32") / 8,
}
x = random.normal(size=(32, 16)).astype("float32")
y = np.sin(x)

specs = {"up": P(None, "model"), "down": P("model", None)}
step = sdy.jit(train_step, {"data": 4, "model": 2}, in_shardings=(specs, P("data"), P("data")))
for number in range(5):
    weights, value = step(weights, x, y)
    print(f"step {number}: loss {float(value):.4f}")
for name, weight in weights.items():
    print(f"{name}: {weight.shape} as {weight.sharding.spec}, a shard is {weight.addressable_shards[0].data.shape}")
print("collectives:", dict(step.cost("cpu-8").counts))
