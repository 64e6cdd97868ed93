"""XLA's loaded executables, compiled from bytecode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.frontends.mlir import parse_module

PATIENCE = (
    ("xla_cpu_collective_call_warn_stuck_seconds", "600"),
    ("xla_cpu_collective_call_terminate_timeout_seconds", "86400"),
)
"""Seconds that host devices wait for each other: on few cores they take turns, and XLA gives up after 40 s."""


def compile_bytecode(
    bytecode: bytes,
    devices: Sequence[Any],
    *,
    overrides: Sequence[tuple[str, str | bool]] = (),
    open_interface: tuple[Sequence[bool], Sequence[bool]] | None = None,
    host_callbacks: Sequence[Any] = (),
) -> Any:
    """Return XLA's loaded executable of a module in the form for XLA.

    Args:
        bytecode: The module.
        devices: The devices.
        overrides: Options of XLA for this compilation.
        open_interface: For each argument, and for each result, whether XLA may choose its sharding; by default, none.
        host_callbacks: The functions of this process that the module calls, by the numbers that it has for them.

    Raises:
        UnsupportedError: XLA refuses the module.
    """
    import jax
    import numpy
    from jaxlib import xla_client

    count = len(devices)
    options = xla_client.CompileOptions()
    options.num_partitions = count
    ids = numpy.array([[device.id for device in devices]], dtype=numpy.int32)
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    options.env_option_overrides = [*overrides, *(PATIENCE if devices[0].platform == "cpu" else ())]
    build = options.executable_build_options
    build.use_spmd_partitioning = count > 1
    build.use_shardy_partitioner = True
    build.num_partitions = count
    build.device_assignment = options.device_assignment
    if open_interface is not None:
        arguments, results = open_interface
        build.allow_spmd_sharding_propagation_to_parameters = list(arguments)
        build.allow_spmd_sharding_propagation_to_output = list(results)
    try:
        return _load(bytecode, devices, options, host_callbacks)
    except jax.errors.JaxRuntimeError as error:
        raise UnsupportedError(Diagnostic("refused-by-xla", f"XLA refuses the module: {first_line(error)}")) from error


def _load(bytecode: bytes, devices: Sequence[Any], options: Any, host_callbacks: Sequence[Any]) -> Any:
    """Return the executable, compiled without the options of host devices where XLA does not know them."""
    import jax
    from jaxlib import xla_client

    client, chosen = devices[0].client, xla_client.DeviceList(tuple(devices))
    module: Any = bytecode
    called = {}
    if host_callbacks:
        # With functions to call, the bindings take a module only.
        module, called = parse_module(bytecode), {"host_callbacks": list(host_callbacks)}
    try:
        return client.compile_and_load(module, chosen, options, **called)
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        options.env_option_overrides = [item for item in options.env_option_overrides if item not in PATIENCE]
        return client.compile_and_load(module, chosen, options, **called)


def first_line(error: Exception) -> str:
    """Return XLA's message without the dump of the op and of the Python stack."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
