"""Running an annotated module on the devices of JAX (extra ``jax``).

The module goes to XLA as it stands: XLA's own partitioner reads the shardings that propagation left on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

from attrs import frozen

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.mlir import import_module
from shardy_py.ir.graph import Op, Value
from shardy_py.ir.interfaces import OpSemantics
from shardy_py.ir.shardings import load_shardings
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding


@frozen
class CompiledModule:
    """A module compiled for a mesh of devices; call it with one array per argument of its main function.

    Args:
        executable: XLA's loaded executable.
        in_shardings: The `jax.sharding.NamedSharding` of every argument.
        out_shardings: Likewise of every result.
        out_shapes: The global shape of every result.
    """

    executable: Any
    in_shardings: tuple[Any, ...]
    out_shardings: tuple[Any, ...]
    out_shapes: tuple[tuple[int, ...], ...]

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Run it.

        Args:
            arguments: Arrays of the global shapes (numpy or JAX); they are distributed as the module says.

        Returns:
            One distributed JAX array of the global shape per result.

        Raises:
            OptionError: not one array per argument.
        """
        import jax

        if len(arguments) != len(self.in_shardings):
            message = f"the module has {len(self.in_shardings)} arguments, {len(arguments)} were given"
            raise OptionError(Diagnostic("argument-count", message, hint="give one array per argument"))
        placed = [jax.device_put(value, where) for value, where in zip(arguments, self.in_shardings, strict=True)]
        results = self.executable.execute_sharded(placed).disassemble_into_single_device_arrays()
        return tuple(
            jax.make_array_from_single_device_arrays(shape, where, shards)
            for shape, where, shards in zip(self.out_shapes, self.out_shardings, results, strict=True)
        )


def to_jax(module: Any, *, semantics: OpSemantics, devices: Sequence[Any] | None = None) -> CompiledModule:
    """Compile an annotated module through XLA, for the devices of JAX.

    Args:
        module: A module with shardings on the arguments and results of its main function, as the propagation
            pipeline leaves it (without sub-axes there, sizes divisible): a `jaxlib.mlir.ir.Module`.
        semantics: What the dialects say about the ops (a `Registry`).
        devices: The devices, as many as the mesh has; the first ones of `jax.devices()` by default.

    Raises:
        UnsupportedError: no mesh, several different ones, or shardings that JAX cannot express.
        OptionError: fewer devices than the mesh has.
    """
    import jax
    import numpy
    from jaxlib import xla_client

    program = import_module(module)
    load_shardings(program, semantics)
    main = _main(program.functions)
    mesh = _only_mesh(program.meshes)
    count = mesh.total_size
    available = list(devices if devices is not None else jax.devices())
    if len(available) < count:
        message = f"the mesh {mesh} has {count} devices, JAX has {len(available)}"
        hint = "for host devices set XLA_FLAGS=--xla_force_host_platform_device_count=N before JAX starts"
        raise OptionError(Diagnostic("too-few-devices", message, hint=hint))
    order = list(mesh.device_ids) or list(range(count))
    chosen = [available[index] for index in order]
    grid = numpy.array(chosen).reshape([axis.size for axis in mesh.axes])
    jax_mesh = jax.sharding.Mesh(grid, [axis.name for axis in mesh.axes])

    def named(value: Value) -> Any:
        sharding = program.shardings.get(value.id)
        return jax.sharding.NamedSharding(jax_mesh, jax.sharding.PartitionSpec(*_partition_spec(sharding, value)))

    arguments = main.regions[0].blocks[0].arguments
    options = xla_client.CompileOptions()
    options.num_partitions = count
    ids = numpy.array([[device.id for device in chosen]], dtype=numpy.int32)
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    build = options.executable_build_options
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = True
    build.num_partitions = count
    build.device_assignment = options.device_assignment
    bytecode = BytesIO()
    module.operation.write_bytecode(bytecode)
    client = chosen[0].client
    executable = client.compile_and_load(bytecode.getvalue(), xla_client.DeviceList(tuple(chosen)), options)
    return CompiledModule(
        executable,
        tuple(named(value) for value in arguments),
        tuple(named(value) for value in main.function_results),
        tuple(value.shape for value in main.function_results),
    )


def _main(functions: dict[str, Op]) -> Op:
    if "main" not in functions:
        raise UnsupportedError(Diagnostic("no-main-function", "XLA compiles the function named main, there is none"))
    return functions["main"]


def _only_mesh(meshes: dict[str, Mesh]) -> Mesh:
    found = {mesh: name for name, mesh in meshes.items() if mesh.axes}
    if len(found) != 1:
        names = ", ".join(found.values()) or "none"
        hint = "the shardings of a compiled module refer to one mesh"
        raise UnsupportedError(Diagnostic("one-mesh-needed", f"the module's meshes with axes are: {names}", hint=hint))
    return next(iter(found))


def _partition_spec(sharding: TensorSharding | None, value: Value) -> list[Any]:
    """Return a sharding as the entries of a PartitionSpec."""
    entries: list[Any] = []
    for dim in sharding.dim_shardings if sharding else ():
        if any(axis.sub_axis for axis in dim.axes):
            message = f"sharding {sharding} of {value!r} has sub-axes, which JAX's shardings cannot express"
            hint = "run the whole propagation pipeline, which removes them from arguments and results"
            raise UnsupportedError(Diagnostic("sub-axes-in-interface", message, hint=hint))
        names = tuple(axis.name for axis in dim.axes)
        entries.append(names[0] if len(names) == 1 else names or None)
    return entries
