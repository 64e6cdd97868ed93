"""Run one propagated program in two processes of JAX, two devices each; needs the extra `jax`.

python examples/compiler_pipeline/several_processes.py
"""

import os
import socket
import subprocess
import sys

PROCESSES = 2


def start() -> None:
    """Start the processes, which find each other by a port of this machine, and print what they print."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, str(port)]
    processes = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True) for number in range(PROCESSES)
    ]
    try:
        outputs = [process.communicate(timeout=240)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for output in outputs:
        # The library of collectives prints, too.
        print(*(line for line in output.splitlines() if line.startswith("process")), sep="\n")
    if any(process.returncode for process in processes):
        sys.exit("a process failed")


def run(port: str, number: int) -> None:
    """Propagate a program in this process, and run it on the devices of all processes."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    import shardy_py as sdy

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", PROCESSES, number)
    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def distribute(array: np.ndarray, *spec: str) -> jax.Array:
        sharding = NamedSharding(mesh, P(*spec))
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    a, b = np.arange(32, dtype="float32").reshape(4, 8) / 10, np.ones((8, 2), "float32")
    arrays = distribute(a, "data", "model"), distribute(b, "model")
    result = sdy.propagate(jax.jit(lambda a, b: jnp.tanh(a @ b)).lower(*arrays))
    (product,) = result.to_jax()(*arrays)
    for shard in product.addressable_shards:
        rows = shard.index[0]
        np.testing.assert_allclose(shard.data, np.tanh(a @ b)[shard.index], rtol=1e-5)
        print(f"process {number}: device {shard.device.id} has rows {rows.start} to {rows.stop}, as computed by numpy")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1], int(sys.argv[2]))
    else:
        start()
