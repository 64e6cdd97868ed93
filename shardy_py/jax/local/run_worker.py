"""The process that runs a local program."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from shardy_py.jax.host import use_devices
from shardy_py.jax.kernels import register_kernels
from shardy_py.support.processes.serve import ShowStep, serve


def run(bytecode: bytes, count: int, shards: Sequence[Any]) -> list[Any]:
    """Return the results of all devices, stacked by device.

    Args:
        bytecode: The module for replicas.
        count: The number of devices.
        shards: The arguments, stacked by device.
    """
    import jax
    import numpy
    from jaxlib import xla_client

    jax.config.update("jax_enable_x64", True)
    register_kernels()
    devices = jax.devices()[:count]
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = count
    options.num_partitions = build.num_partitions = 1
    ids = numpy.array([[device.id] for device in devices], numpy.int32)
    options.device_assignment = build.device_assignment = xla_client.DeviceAssignment.create(ids)
    executable = devices[0].client.compile_and_load(bytecode, xla_client.DeviceList(tuple(devices)), options)
    outputs = executable.execute_sharded([_placed(array, devices) for array in shards])
    parts = outputs.disassemble_into_single_device_arrays()
    return [numpy.stack([numpy.asarray(part) for part in result]) for result in parts]


def _placed(array: Any, devices: Sequence[Any]) -> Any:
    """Return an array whose part on each device is that shard; a scalar counts as replicated."""
    import jax
    import numpy

    mesh = jax.sharding.Mesh(numpy.array(devices), ("devices",))
    spec = jax.sharding.PartitionSpec(*["devices"][: array.ndim - 1])
    shape = (len(devices) * array.shape[1], *array.shape[2:]) if array.ndim > 1 else ()
    parts = [jax.device_put(part, device) for part, device in zip(array, devices, strict=True)]
    return jax.make_array_from_single_device_arrays(shape, jax.sharding.NamedSharding(mesh, spec), parts)


def main() -> None:
    """Run the program that the parent sends, on its shards."""
    serve(_answer)


def _answer(request: bytes, show: ShowStep) -> bytes:
    bytecode, count, shards = pickle.loads(request)
    use_devices(count)
    return pickle.dumps(run(bytecode, count, shards))
