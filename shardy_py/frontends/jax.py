"""Running an annotated module on the devices of JAX (extra ``jax``).

The module goes to XLA as it stands: XLA's own partitioner reads the shardings that propagation left on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

from attrs import frozen

from shardy_py.errors import Diagnostic, OptionError, UnsupportedError
from shardy_py.frontends.mlir import import_module, to_module
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.interfaces import OpSemantics
from shardy_py.ir.shardings import load_shardings
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

_COLLECTIVES = frozenset(
    f"sdy.{name}"
    for name in ("all_gather", "all_slice", "all_to_all", "all_reduce", "reduce_scatter", "collective_permute")
)


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
            pipeline leaves it: a `jaxlib.mlir.ir.Module`, or anything else that `to_module` takes.
        semantics: What the dialects say about the ops (a `Registry`).
        devices: The devices, as many as the mesh has; the first ones of `jax.devices()` by default.

    Raises:
        UnsupportedError: no function named main, no mesh or several different ones, Shardy's collectives, or
            XLA refuses the module.
        OptionError: fewer devices than the mesh has.
    """
    import jax
    import numpy
    from jaxlib import xla_client

    module = to_module(module)
    program = import_module(module)
    load_shardings(program, semantics)
    main = _main(program.functions)
    _refuse_collectives(program)
    mesh = _only_mesh(program.meshes)
    count = mesh.total_size
    available = list(devices if devices is not None else jax.devices())
    if len(available) < count:
        message = f"the mesh {mesh} has {count} devices, JAX has {len(available)}"
        hint = "for host devices set XLA_FLAGS=--xla_force_host_platform_device_count=N before JAX starts"
        raise OptionError(Diagnostic("too-few-devices", message, hint=hint))
    order = list(mesh.device_ids) or list(range(count))
    chosen = [available[index] for index in order]
    arguments = main.regions[0].blocks[0].arguments
    interface = [program.shardings.get(value.id) for value in (*arguments, *main.function_results)]
    parts = _parts_of_axes(mesh, [sharding for sharding in interface if sharding])
    grid = numpy.array(chosen).reshape([part.size for axis in mesh.axes for part in parts[axis.name]])
    jax_mesh = jax.sharding.Mesh(grid, [part.name for axis in mesh.axes for part in parts[axis.name]])

    def named(value: Value) -> Any:
        spec = jax.sharding.PartitionSpec(*_partition_spec(program.shardings.get(value.id), parts))
        return jax.sharding.NamedSharding(jax_mesh, spec)

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
    try:
        executable = client.compile_and_load(bytecode.getvalue(), xla_client.DeviceList(tuple(chosen)), options)
    except jax.errors.JaxRuntimeError as error:
        raise UnsupportedError(Diagnostic("refused-by-xla", f"XLA refuses the module: {error}")) from error
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


def _refuse_collectives(program: Program) -> None:
    for op in program.walk():
        if op.name in _COLLECTIVES:
            hint = "propagate without explicit collectives: XLA's partitioner makes its own"
            message = "XLA compiles no collectives of Shardy"
            raise UnsupportedError(Diagnostic("collective", message, op.location, op.name, hint))


def _only_mesh(meshes: dict[str, Mesh]) -> Mesh:
    found = {mesh: name for name, mesh in meshes.items() if mesh.axes}
    if len(found) != 1:
        names = ", ".join(found.values()) or "none"
        hint = "the shardings of a compiled module refer to one mesh"
        raise UnsupportedError(Diagnostic("one-mesh-needed", f"the module's meshes with axes are: {names}", hint=hint))
    return next(iter(found))


@frozen
class _Part:
    """A part of a mesh axis that is an axis of JAX's mesh.

    Args:
        name: The name of the axis there.
        pre_size: The size of all parts before it.
        size: Its own size.
    """

    name: str
    pre_size: int
    size: int


def _parts_of_axes(mesh: Mesh, shardings: Iterable[TensorSharding]) -> dict[str, list[_Part]]:
    """Return each axis as the parts that the sub-axes in some shardings cut it into; JAX's meshes know no sub-axes."""
    cuts: dict[str, set[int]] = {axis.name: {1, axis.size} for axis in mesh.axes}
    for axis in (axis for sharding in shardings for dim in sharding.dim_shardings for axis in dim.axes):
        if axis.sub_axis:
            cuts[axis.name] |= {axis.sub_axis.pre_size, axis.sub_axis.pre_size * axis.sub_axis.size}
    return {axis.name: _parts(axis.name, sorted(cuts[axis.name])) for axis in mesh.axes}


def _parts(name: str, cuts: list[int]) -> list[_Part]:
    if len(cuts) <= 2:
        return [_Part(name, 1, cuts[-1])]
    if any(after % before for before, after in pairwise(cuts)):
        message = f"the shardings of arguments and results cut the axis {name!r} in ways that do not fit together"
        raise UnsupportedError(Diagnostic("sub-axes-in-interface", message, hint="use another size for the axis"))
    return [_Part(f"{name}:({before}){after // before}", before, after // before) for before, after in pairwise(cuts)]


def _partition_spec(sharding: TensorSharding | None, parts: dict[str, list[_Part]]) -> list[Any]:
    """Return a sharding as the entries of a PartitionSpec."""
    entries: list[Any] = []
    for dim in sharding.dim_shardings if sharding else ():
        names = tuple(part.name for axis in dim.axes for part in _parts_in(axis, parts[axis.name]))
        entries.append(names[0] if len(names) == 1 else names or None)
    return entries


def _parts_in(axis: AxisRef, parts: list[_Part]) -> list[_Part]:
    if axis.sub_axis is None:
        return parts
    end = axis.sub_axis.pre_size * axis.sub_axis.size
    return [part for part in parts if axis.sub_axis.pre_size <= part.pre_size < end]
