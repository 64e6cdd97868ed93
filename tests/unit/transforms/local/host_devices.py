"""Local programs on host devices: a process of its own, in which no partitioner runs.

Each device is a replica, so that the text has replica ids for partition ids, and collectives without channels.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import shardy_py as sdy
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.passes import PassContext
from shardy_py.ir.shardings import store_shardings
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.targets.jax.unsharded import without_shardings
from shardy_py.transforms.local.convert_global_to_local import ConvertGlobalToLocalPass

Index = tuple[slice, ...]

_WORKER = """
import os, pickle, sys
count, programs = pickle.load(open(sys.argv[1], "rb"))
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, numpy as np
from jaxlib import xla_client as xc

def run(text, per_device):
    n = len(per_device[0]) if per_device else count
    devices = jax.devices()[:n]
    options = xc.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = n
    options.num_partitions = build.num_partitions = 1
    ids = np.array([[d.id] for d in devices], np.int32)
    options.device_assignment = build.device_assignment = xc.DeviceAssignment.create(ids)
    exe = devices[0].client.compile_and_load(text.encode(), xc.DeviceList(tuple(devices)), options)
    mesh = jax.sharding.Mesh(np.array(devices), ("d",))
    arguments = []
    for a in per_device:
        spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*["d"][: a.ndim - 1]))
        shape = (n * a.shape[1], *a.shape[2:]) if a.ndim > 1 else ()
        parts = [jax.device_put(x, d) for x, d in zip(a, devices)]
        arguments.append(jax.make_array_from_single_device_arrays(shape, spec, parts))
    results = exe.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [np.stack([np.asarray(x) for x in r]) for r in results]

pickle.dump([run(*item) for item in programs], open(sys.argv[2], "wb"))
"""


def compare(text: str, folder: Path, *arrays: Any) -> list[str]:
    """Check that the local program of a text gives what one device gives, and that replicas agree.

    Args:
        text: The module, with shardings.
        folder: A folder for files.
        arrays: The arguments of its main function.

    Returns:
        The names of the ops that were gathered.
    """
    result = sdy.propagate(text, explicit_collectives=True)
    program = result.program
    mesh = max(program.meshes.values(), key=lambda item: item.total_size)
    shapes = [value.shape for value in result.main.function_results]
    context = PassContext(result.registry)
    inputs, outputs = result.arguments, result.results
    ConvertGlobalToLocalPass(trust_shardings=False, gather_unsupported_ops=True).run(program, context)
    store_shardings(program, result.registry)
    frontend = frontend_of(program)
    local = _of_replicas(str(without_shardings(frontend.write_back(program))))
    parts = [np.stack([a[i] for i in _indices(s, mesh, a.shape)]) for a, s in zip(arrays, inputs, strict=True)]
    one = str(without_shardings(text))
    found, wanted = _run(folder, mesh.total_size, [(local, parts), (one, [a[None] for a in arrays])])
    for per_device, sharding, shape, whole in zip(found, outputs, shapes, wanted, strict=True):
        for part, index in zip(per_device, _indices(sharding, mesh, shape), strict=True):
            np.testing.assert_allclose(part, whole[0][index], rtol=2e-5, atol=2e-5)
    return [warning.op for warning in context.warnings if warning.code == "gathered-op"]


def _of_replicas(text: str) -> str:
    """Return a module for replicas instead of partitions."""
    text = re.sub(r"channel_handle = #stablehlo.channel_handle<[^>]*>,? ?", "", text)
    text = re.sub(r"(, )?use_global_device_ids", "", text).replace("stablehlo.partition_id", "stablehlo.replica_id")
    return re.sub(r",\s*(>?\})", r"\1", text)


def _indices(sharding: TensorSharding | None, mesh: Mesh, shape: Sequence[int]) -> list[Index]:
    """Return the part of a tensor that each device has."""
    columns = []
    for dim, size in enumerate(shape):
        axes = () if sharding is None else sharding.dim_shardings[dim].axes
        count = 1 if sharding is None else sharding.dim_shardings[dim].sharded_size(mesh)
        step = size // count
        columns.append([slice(place * step, (place + 1) * step) for place in shard_positions(mesh, axes)])
    return [tuple(column[device] for column in columns) for device in range(mesh.total_size)]


def _run(folder: Path, count: int, programs: list[Any]) -> list[Any]:
    request, answer = folder / "request", folder / "answer"
    request.write_bytes(pickle.dumps((count, programs)))
    subprocess.run([sys.executable, "-c", _WORKER, str(request), str(answer)], check=True, capture_output=True)
    found: list[Any] = pickle.loads(answer.read_bytes())
    return found
