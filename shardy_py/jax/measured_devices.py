"""Measured speeds of the devices of JAX: products, memory, and messages between devices."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from shardy_py.errors import Diagnostic, OptionError, require_library
from shardy_py.support.memory import machine_bytes
from shardy_py.values import frozen

_DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
_REPEATS = 5
_LONG_ENOUGH = 5e-3
"""The seconds from which a kernel's time is more than that of its start."""
_SIDES = tuple(2**power for power in range(8, 15))
_COUNTS = tuple(2**power for power in range(20, 29, 2))


@frozen
class DeviceSpeeds:
    """Measured speeds of equal devices.

    Args:
        platform: What JAX calls their kind of hardware: ``cpu``, ``gpu`` or ``tpu``.
        kind: What JAX calls the device.
        count: The number of devices.
        memory_bytes: The bytes of memory of one device.
        flops: Element type in MLIR's notation to operations per second of a product on one device.
        memory_bandwidth: The bytes that an elementwise kernel reads and writes per second on one device.
        link_bandwidth: The bytes per second that a device sends in an all-gather over all; None with one device.
        link_latency: The seconds of an all-gather of a few bytes; None with one device.
    """

    platform: str
    kind: str
    count: int
    memory_bytes: int
    flops: Mapping[str, float]
    memory_bandwidth: float
    link_bandwidth: float | None = None
    link_latency: float | None = None


def measure_devices() -> DeviceSpeeds:
    """Return the speeds of the devices of JAX, each kernel at its fastest of several runs.

    Where several devices share the cores of one host, all run the kernel at once, as in a program over all of them.

    Raises:
        OptionError: JAX is not installed, or the memory of the devices is not known.
    """
    require_library("jax", purpose="a calibration runs kernels on the devices of JAX and needs", extra="jax")
    import jax

    devices = jax.devices()
    links = _links(len(devices)) if len(devices) > 1 else (None, None)
    return DeviceSpeeds(
        devices[0].platform,
        devices[0].device_kind,
        len(devices),
        _memory_bytes(devices),
        {name: _product_flops(dtype) for name, dtype in _DTYPES.items()},
        _memory_bandwidth(),
        *links,
    )


def _product_flops(dtype: str) -> float:
    """Return the operations per second of a product of square matrices that is large enough."""
    import jax

    for side in _SIDES:
        operand = _on_all((side, side), dtype)
        seconds = _fastest(jax.jit(lambda x: x @ x), operand)
        if seconds >= _LONG_ENOUGH:
            break
    return 2.0 * side**3 / seconds


def _memory_bandwidth() -> float:
    """Return the bytes per second of a kernel that reads and writes an array that is large enough."""
    import jax

    for count in _COUNTS:
        operand = _on_all((count,), "float32")
        seconds = _fastest(jax.jit(lambda x: x + 1), operand)
        if seconds >= _LONG_ENOUGH:
            break
    return 2.0 * 4 * count / seconds


def _links(count: int) -> tuple[float, float]:
    """Return the bytes per second that a device sends in an all-gather, and the seconds of a small one."""
    import jax

    replicated = jax.sharding.NamedSharding(_mesh(), jax.sharding.PartitionSpec())
    gather = jax.jit(lambda x: x.reshape(-1), out_shardings=replicated)
    latency = _fastest(gather, _on_all((1,), "float32"))
    for size in _COUNTS:
        seconds = _fastest(gather, _on_all((size // count,), "float32"))
        if seconds - latency >= _LONG_ENOUGH:
            break
    sent = 4.0 * (size // count) * (count - 1)
    return sent / max(seconds - latency, seconds / 10), latency


def _mesh() -> Any:
    import jax
    import numpy as np

    return jax.sharding.Mesh(np.array(jax.devices()), ("devices",))


def _on_all(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array with a part of a shape on each device."""
    import jax
    import jax.numpy as jnp

    sharding = jax.sharding.NamedSharding(_mesh(), jax.sharding.PartitionSpec("devices"))
    return jax.jit(lambda: jnp.ones((jax.device_count(), *shape), dtype), out_shardings=sharding)()


def _fastest(kernel: Callable[[Any], Any], operand: Any) -> float:
    """Return the seconds of the fastest run, after one that compiles."""
    kernel(operand).block_until_ready()
    seconds = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        kernel(operand).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return max(min(seconds), 1e-9)


def _memory_bytes(devices: list[Any]) -> int:
    """Return the bytes of memory of a device: what it says, else its share of the host's."""
    stats = devices[0].memory_stats() or {}
    if stats.get("bytes_limit"):
        return int(stats["bytes_limit"])
    host_bytes = machine_bytes()
    if host_bytes is None:
        message = "the memory of the devices is not known: they do not say, and neither does the host"
        raise OptionError(Diagnostic("unknown-memory", message, hint="calibrate on a GPU, or write a TOML file"))
    return host_bytes // len(devices)
