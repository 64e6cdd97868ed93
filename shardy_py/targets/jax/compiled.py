"""A module compiled for a mesh of devices."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.targets.jax.arguments import ArrayType, place


@frozen
class CompiledModule:
    """A module compiled for the devices of JAX; call it with one array per argument of its main function.

    Args:
        executable: XLA's loaded executable; ``executable.hlo_modules()`` is what XLA made of the module.
        in_shardings: The `jax.sharding.NamedSharding` of every argument.
        out_shardings: The `jax.sharding.NamedSharding` of every result.
        in_types: The global shape and the dtype of every argument.
        out_types: The global shape and the dtype of every result.
    """

    executable: Any
    in_shardings: tuple[Any, ...]
    out_shardings: tuple[Any, ...]
    in_types: tuple[ArrayType, ...]
    out_types: tuple[ArrayType, ...]

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
                place(number, value, type_, sharding)
                for number, (value, type_, sharding) in enumerate(
                    zip(arguments, self.in_types, self.in_shardings, strict=True)
                )
            ]
            results = self.executable.execute_sharded(placed).disassemble_into_single_device_arrays()
            return [
                jax.make_array_from_single_device_arrays(type_.shape, sharding, shards)
                for type_, sharding, shards in zip(self.out_types, self.out_shardings, results, strict=True)
            ]
