"""Propagated modules through XLA, for the devices of JAX (extra ``jax``)."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError, require_library
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.interfaces import OpSemantics
from shardy_py.targets.jax.arguments import array_types
from shardy_py.targets.jax.compiled import CompiledModule
from shardy_py.targets.jax.devices import choose_devices, device_count
from shardy_py.targets.jax.form import for_xla
from shardy_py.targets.jax.form.donate_arguments import donated_arguments
from shardy_py.targets.jax.kernels import register_kernels
from shardy_py.targets.jax.named_shardings import to_named_sharding
from shardy_py.targets.jax.probe import probe
from shardy_py.targets.jax.refusals import refuse_what_cannot_run

_PATIENCE = (
    ("xla_cpu_collective_call_warn_stuck_seconds", "600"),
    ("xla_cpu_collective_call_terminate_timeout_seconds", "86400"),
)
"""How long host devices wait for each other: with few cores they take turns, and XLA ends the process after 40 s."""


def to_jax(
    module: Any, *, semantics: OpSemantics, devices: Sequence[Any] | None = None, leave_open: bool = False
) -> CompiledModule:
    """Compile a propagated module through XLA, for the devices of JAX.

    Args:
        module: A module as the propagation pipeline leaves it: a `jaxlib.mlir.ir.Module`, or anything else that
            `to_module` takes. It stays as it is; what is compiled is its form for XLA.
        semantics: What the dialects say about the ops (a `Registry`).
        devices: The devices, at least as many as the largest mesh has; the first ones of ``jax.devices()`` by default.
        leave_open: Whether values without a sharding are left to XLA's own propagation.

    Raises:
        UnsupportedError: no function named main, meshes over different devices, an argument or result that no array
            is, or XLA refuses the module.
        OptionError: fewer devices than the largest mesh has.
    """
    require_library("jax", purpose="running a module needs", extra="jax")
    register_kernels()
    program = for_xla(module, semantics=semantics, leave_open=leave_open)
    main = _main(program)
    refuse_what_cannot_run(program)
    arguments, results = main.regions[0].blocks[0].arguments, main.function_results
    types = array_types(arguments, "argument"), array_types(results, "result")
    meshes = program.meshes
    chosen = choose_devices(device_count(meshes.values()), devices, meshes)

    def placed(values: Sequence[Value]) -> tuple[Any, ...]:
        found = [program.shardings.get(value.id) for value in values]
        return tuple(to_named_sharding(sharding, meshes, chosen) for sharding in found)

    in_shardings, out_shardings = placed(arguments), placed(results)
    bytecode = BytesIO()
    program.origin.module.operation.write_bytecode(bytecode)
    probe(program, bytecode.getvalue(), len(chosen))
    executable, donated = compile_bytecode(bytecode.getvalue(), chosen), donated_arguments(main)
    return CompiledModule(tuple(chosen), executable, in_shardings, out_shardings, *types, donated)


def _main(program: Program) -> Op:
    main = program.functions.get("main")
    if main is None or not main.regions[0].blocks:
        raise UnsupportedError(Diagnostic("no-main-function", "XLA compiles the function named main, there is none"))
    return main


def compile_bytecode(bytecode: bytes, devices: Sequence[Any]) -> Any:
    """Return XLA's loaded executable of a module in the form for XLA.

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
    if devices[0].platform == "cpu":
        options.env_option_overrides = list(_PATIENCE)
    build = options.executable_build_options
    build.use_spmd_partitioning = count > 1
    build.use_shardy_partitioner = True
    build.num_partitions = count
    build.device_assignment = options.device_assignment
    try:
        return _load(bytecode, devices, options)
    except jax.errors.JaxRuntimeError as error:
        raise UnsupportedError(Diagnostic("refused-by-xla", f"XLA refuses the module: {_words(error)}")) from error


def _load(bytecode: bytes, devices: Sequence[Any], options: Any) -> Any:
    """Return the executable, compiled without the options of host devices where XLA does not know them."""
    import jax
    from jaxlib import xla_client

    client, chosen = devices[0].client, xla_client.DeviceList(tuple(devices))
    try:
        return client.compile_and_load(bytecode, chosen, options)
    except jax.errors.JaxRuntimeError as error:
        if "No such compile option" not in str(error):
            raise
        options.env_option_overrides = []
        return client.compile_and_load(bytecode, chosen, options)


def _words(error: Exception) -> str:
    """Return XLA's message without the dump of the op and of the Python stack."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
