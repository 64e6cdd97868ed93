"""A module that XLA partitioned and compiled for a mesh of devices."""

from __future__ import annotations

from typing import Any

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.jax.arguments import ArrayType, place
from shardy_py.jax.callable.contexts import concrete_context_mesh
from shardy_py.jax.callable.trees import call_with_trees, check_argument_count
from shardy_py.jax.compiled_stage import CompiledStage
from shardy_py.jax.signature import JaxSignature
from shardy_py.values import frozen


@frozen
class CompiledModule(CompiledStage):
    """A module that XLA partitioned for the devices of JAX; call it with one array per argument of its main function.

    Args:
        devices: The devices, by the numbers that the meshes of the module give them.
        executable: XLA's loaded executable; ``executable.hlo_modules()`` is what XLA made of the module.
        in_shardings: The `jax.sharding.NamedSharding` of every argument.
        out_shardings: The `jax.sharding.NamedSharding` of every result.
        in_types: The global shape and the dtype of every argument.
        out_types: The global shape and the dtype of every result.
        donated: The numbers of the arguments whose memory the results may take.
        signature: The trees of arguments and results of a function of JAX; None for other programs.
    """

    devices: tuple[Any, ...]
    executable: Any
    in_shardings: tuple[Any, ...]
    out_shardings: tuple[Any, ...]
    in_types: tuple[ArrayType, ...]
    out_types: tuple[ArrayType, ...]
    donated: frozenset[int] = frozenset()
    signature: JaxSignature | None = None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it.

        Args:
            arguments: The arguments of the function of JAX, in its trees; or one array per argument of the main
                function. Arrays have the global shapes (numpy or JAX); they are distributed as the module says. A
                donated argument that is distributed like that already is gone afterwards, as with `jax.jit`.
            keywords: The arguments of the function by keyword.

        Returns:
            One distributed JAX array of the global shape per result: in the tree of the function that was called with
            its own trees, unless that is one array or a flat tuple or list; else in a list.

        Raises:
            OptionError: not one array per argument, or one of another shape or dtype.
            UnsupportedError: an argument is a value that JAX traces.
        """
        return call_with_trees(self, arguments, keywords)

    def hlo(self) -> str:
        """Return the text of the compiled program, with its collectives."""
        text: str = self.executable.hlo_modules()[0].to_string()
        return text

    def run(self, *arguments: Any) -> list[Any]:
        """Run it with one array per argument of the main function, and return one per result.

        Args:
            arguments: The arrays.

        Raises:
            OptionError: not one array per argument, or one of another shape or dtype.
            UnsupportedError: an argument is a value that JAX traces.
        """
        import jax

        _refuse_tracers(arguments)
        check_argument_count(len(arguments), len(self.in_types))
        # Without it JAX turns 64-bit arrays into 32-bit ones on the way.
        with jax.enable_x64(True):
            placed = [
                place(number, value, type_, sharding, is_donated=number in self.donated)
                for number, (value, type_, sharding) in enumerate(
                    zip(arguments, self.in_types, self.in_shardings, strict=True)
                )
            ]
            local_devices = tuple(device for device in self.devices if device.process_index == jax.process_index())
            ordered = [_in_device_order(array, self.devices, local_devices) for array in placed]
            results = self.executable.execute_sharded(ordered).disassemble_into_single_device_arrays()
            meshes = _known_meshes(arguments)
            return [
                jax.make_array_from_single_device_arrays(type_.shape, _over_known_mesh(sharding, meshes), shards)
                for type_, sharding, shards in zip(self.out_types, self.out_shardings, results, strict=True)
            ]


def _refuse_tracers(arguments: tuple[Any, ...]) -> None:
    """Check that arguments are arrays, and not what stands for them while JAX traces a function.

    Raises:
        UnsupportedError: one is not.
    """
    import jax

    number = next((index for index, value in enumerate(arguments) if isinstance(value, jax.core.Tracer)), None)
    if number is not None:
        message = f"argument {number} is traced by JAX: what XLA partitioned cannot be part of another program"
        hint = "leave partitioner='xla' out: then it may be called in jax.jit and in loops"
        raise UnsupportedError(Diagnostic("traced-argument", message, hint=hint))


def _known_meshes(arguments: tuple[Any, ...]) -> list[Any]:
    """Return the meshes of JAX that the arguments are over, and the one that the caller has set."""
    import jax

    meshes = [getattr(value.sharding, "mesh", None) for value in arguments if isinstance(value, jax.Array)]
    return [mesh for mesh in (*meshes, concrete_context_mesh()) if isinstance(mesh, jax.sharding.Mesh) and mesh.size]


def _over_known_mesh(sharding: Any, meshes: list[Any]) -> Any:
    """Return a sharding over one of some meshes that has the same axes and devices, and types of axes of its own."""
    import jax

    mesh = sharding.mesh
    for known in meshes:
        same = known.axis_names == mesh.axis_names and known.devices.shape == mesh.devices.shape
        if same and (known.devices == mesh.devices).all():
            return jax.sharding.NamedSharding(known, sharding.spec, memory_kind=sharding.memory_kind)
    return sharding


def _in_device_order(array: Any, devices: tuple[Any, ...], local_devices: tuple[Any, ...]) -> Any:
    """Return an array whose shards lie as XLA takes them: in the order of the devices it compiled for.

    An array over a mesh with another order becomes one of the same shards along the first dimension: XLA looks at the
    shards only.

    Args:
        array: The array.
        devices: All devices.
        local_devices: Those of this process.
    """
    import jax
    import numpy

    shards = {shard.device: shard.data for shard in array.addressable_shards}
    if tuple(shards) == local_devices:
        return array
    local = next(iter(shards.values())).shape
    mesh = jax.sharding.Mesh(numpy.array(devices, dtype=object), "devices")
    spec = jax.sharding.PartitionSpec("devices") if local else jax.sharding.PartitionSpec()
    shape = (local[0] * len(devices), *local[1:]) if local else ()
    sharding = jax.sharding.NamedSharding(mesh, spec)
    return jax.make_array_from_single_device_arrays(shape, sharding, [shards[device] for device in local_devices])
