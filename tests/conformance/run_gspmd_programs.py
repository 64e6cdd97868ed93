"""The process that compiles programs with XLA's GSPMD partitioner and compares them with those of Shardy's.

It writes one line of JSON: name to the largest difference, or to what XLA says.
"""

from __future__ import annotations

import json
import os
import sys
from io import BytesIO
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy
from jaxlib import xla_client

from shardy_py import propagate
from tests.integration.jax_programs import MESH, PROGRAMS, lower


def main() -> None:
    """Compare all programs."""
    numpy.random.seed(0)
    print(json.dumps({name: _difference(name) for name in sys.argv[1:] or PROGRAMS}))


def _difference(name: str) -> float | str:
    result = propagate(lower(name, shardy=True), MESH)
    run = result.to_jax()
    inputs = [_values(type_) for type_ in run.in_types]
    expected = [numpy.asarray(value) for value in run.run(*inputs)]
    module = result.for_gspmd()
    attributes = result.main.function_results
    try:
        executable = _compile(module)
    except jax.errors.JaxRuntimeError as error:
        return str(error).split("\n", 1)[0]
    placed = [jax.device_put(value, sharding) for value, sharding in zip(inputs, run.in_shardings, strict=True)]
    shards = executable.execute_sharded(placed).disassemble_into_single_device_arrays()
    collected = [
        numpy.asarray(jax.make_array_from_single_device_arrays(value.shape, sharding, parts))
        for value, sharding, parts in zip(attributes, run.out_shardings, shards, strict=True)
    ]
    return max(
        float(numpy.max(numpy.abs(left.astype("float64") - right.astype("float64"))))
        for left, right in zip(collected, expected, strict=True)
    )


def _values(type_: Any) -> Any:
    if type_.dtype.kind == "f":
        return (numpy.random.standard_normal(type_.shape) * 0.3).astype(type_.dtype)
    return numpy.random.randint(0, 4, type_.shape).astype(type_.dtype)


def _compile(module: Any) -> Any:
    devices = jax.devices()
    options = xla_client.CompileOptions()
    options.num_partitions = len(devices)
    ids = numpy.array([[device.id for device in devices]], dtype=numpy.int32)
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    build = options.executable_build_options
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, False
    build.num_partitions, build.device_assignment = len(devices), options.device_assignment
    bytecode = BytesIO()
    module.operation.write_bytecode(bytecode)
    return devices[0].client.compile_and_load(bytecode.getvalue(), xla_client.DeviceList(tuple(devices)), options)


if __name__ == "__main__":
    main()
