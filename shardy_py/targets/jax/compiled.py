"""A module compiled for a mesh of devices."""

from __future__ import annotations

from typing import Any

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.targets.jax.arguments import ArrayType, place
from shardy_py.values import frozen


@frozen
class CompiledModule:
    """A module compiled for the devices of JAX; call it with one array per argument of its main function.

    Args:
        devices: The devices, by the numbers that the meshes of the module give them.
        executable: XLA's loaded executable; ``executable.hlo_modules()`` is what XLA made of the module.
        in_shardings: The `jax.sharding.NamedSharding` of every argument.
        out_shardings: The `jax.sharding.NamedSharding` of every result.
        in_types: The global shape and the dtype of every argument.
        out_types: The global shape and the dtype of every result.
        donated: The numbers of the arguments whose memory the results may take.
    """

    devices: tuple[Any, ...]
    executable: Any
    in_shardings: tuple[Any, ...]
    out_shardings: tuple[Any, ...]
    in_types: tuple[ArrayType, ...]
    out_types: tuple[ArrayType, ...]
    donated: frozenset[int] = frozenset()

    def __call__(self, *arguments: Any) -> list[Any]:
        """Run it.

        Args:
            arguments: Arrays of the global shapes (numpy or JAX); they are distributed as the module says. A donated
                argument that is distributed like that already is gone afterwards, as with `jax.jit`.

        Returns:
            One distributed JAX array of the global shape per result.

        Raises:
            OptionError: not one array per argument, or one of another shape or dtype.
        """
        import jax

        if len(arguments) != len(self.in_types):
            message = f"the module has {len(self.in_types)} arguments, {len(arguments)} were given"
            raise OptionError(Diagnostic("argument-count", message, hint="give one array per argument"))
        # Without it JAX turns 64-bit arrays into 32-bit ones on the way.
        with jax.enable_x64(True):
            placed = [
                place(number, value, type_, sharding, is_donated=number in self.donated)
                for number, (value, type_, sharding) in enumerate(
                    zip(arguments, self.in_types, self.in_shardings, strict=True)
                )
            ]
            ordered = [_in_device_order(array, self.devices) for array in placed]
            results = self.executable.execute_sharded(ordered).disassemble_into_single_device_arrays()
            return [
                jax.make_array_from_single_device_arrays(type_.shape, sharding, shards)
                for type_, sharding, shards in zip(self.out_types, self.out_shardings, results, strict=True)
            ]


def _in_device_order(array: Any, devices: tuple[Any, ...]) -> Any:
    """Return an array whose shards lie as XLA takes them: in the order of the devices it compiled for.

    An array over a mesh with another order becomes one of the same shards along the first dimension: XLA looks at the
    shards only.
    """
    import jax
    import numpy

    shards = {shard.device: shard.data for shard in array.addressable_shards}
    if tuple(shards) == devices:
        return array
    local = next(iter(shards.values())).shape
    mesh = jax.sharding.Mesh(numpy.array(devices, dtype=object), "devices")
    spec = jax.sharding.PartitionSpec("devices") if local else jax.sharding.PartitionSpec()
    shape = (local[0] * len(devices), *local[1:]) if local else ()
    sharding = jax.sharding.NamedSharding(mesh, spec)
    return jax.make_array_from_single_device_arrays(shape, sharding, [shards[device] for device in devices])
