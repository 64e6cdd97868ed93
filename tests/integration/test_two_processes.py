"""Programs of JAX run in several processes, each with devices of its own."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

pytest.importorskip("jax")

SCRIPT = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import shardy_py as sdy

jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(f"127.0.0.1:{sys.argv[2]}", 2, int(sys.argv[1]))
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
a, b = np.arange(32, dtype=np.float32).reshape(4, 8) / 10, np.ones((8, 2), np.float32)


def put(array, *spec):
    return jax.make_array_from_callback(array.shape, NamedSharding(mesh, P(*spec)), lambda index: array[index])


function = jax.jit(lambda a, b: jnp.tanh(a @ b))
arrays = put(a, "x", "y"), put(b, "y")
wanted = function(*arrays)
(found,) = sdy.propagate(function.lower(*arrays)).to_jax()(*arrays)
pairs = zip(wanted.addressable_shards, found.addressable_shards, strict=True)
assert all(np.allclose(one.data, other.data) for one, other in pairs)


def loss(x, layers):
    return (jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, layers)[0] ** 2).sum()


layers = np.ones((3, 8, 8), np.float32) / 20
given = put(a, "x"), put(layers, None, None, "y")
shardings = tuple(item.sharding for item in given)
wanted = jax.jit(jax.grad(loss, (0, 1)), out_shardings=shardings)(*given)
found = jax.jit(jax.grad(sdy.jit(loss, in_shardings=shardings), (0, 1)), out_shardings=shardings)(*given)
for one, other in zip(wanted, found, strict=True):
    pairs = zip(one.addressable_shards, other.addressable_shards, strict=True)
    assert all(np.allclose(one.data, other.data, rtol=1e-4) for one, other in pairs)
print("equal", len(found[0].addressable_shards))
"""


@pytest.mark.slow
def test_each_process_has_its_shards() -> None:
    """Two processes of four devices each get the same shards as from `jax.jit`, of gradients, too."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(number), port],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    try:
        answers = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    # The library of collectives prints, too.
    assert [out.strip().splitlines()[-1:] for out, _ in answers] == [["equal 4"]] * 2, answers[0][1][-2000:]
