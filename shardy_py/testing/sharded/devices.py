"""Virtual devices that run a local program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import field

from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.shardings import entry_arguments
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.testing.numeric.bench import Arrays
from shardy_py.testing.numeric.pieces import Array
from shardy_py.testing.sharded.interpreter import Functions, Interpreter
from shardy_py.testing.sharded.rendezvous import Rendezvous
from shardy_py.testing.sharded.virtual_ops import poison
from shardy_py.values import define

Part = tuple[slice, ...]


@define
class VirtualDevices:
    """Virtual devices, as many as the largest mesh has.

    Attributes:
        program: The local program.
        functions: The function of each op name.
        semantics: What is known about ops.
        main: The name of the main function.
    """

    program: Program
    functions: Functions
    semantics: OpSemantics
    main: str
    count: int = field(init=False)
    interpreters: Sequence[Interpreter] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.count = max((mesh.total_size for mesh in self.program.meshes.values()), default=1)
        rendezvous = Rendezvous(self.count)
        self.interpreters = [
            Interpreter(self.program, self.functions, self.semantics, device, rendezvous)
            for device in range(self.count)
        ]

    def run(self, arrays: Sequence[Array]) -> Arrays:
        """Return the whole results for whole arguments.

        Args:
            arrays: The arguments of the main function.
        """
        function = self.program.functions[self.main]
        arguments = entry_arguments(function)
        shards = [self.split(array, value) for array, value in zip(arrays, arguments, strict=True)]
        rendezvous = self.interpreters[0].rendezvous
        results_by_device = rendezvous.run(
            lambda device: self.interpreters[device].run(
                self.main, [argument_shards[device] for argument_shards in shards]
            )
        )
        return tuple(
            self.join([results[number] for results in results_by_device], value)
            for number, value in enumerate(function.function_results)
        )

    def split(self, array: Array, value: Value) -> list[Array]:
        """Return the shard of an array that each device has; what lies beyond its end is NaN, or the largest number.

        Args:
            array: The whole array.
            value: The local value that has it.
        """
        shape, sharding = static_shape(value.type) or (), self.program.sharding(value)
        shards = []
        for part in self.parts(shape, sharding, array.ndim):
            shard = array[part]
            if shard.shape != shape:
                padded = np.full(shape, poison(array.dtype), array.dtype)
                padded[tuple(slice(size) for size in shard.shape)] = shard
                shard = padded
            shards.append(shard)
        return shards

    def join(self, shards: Sequence[Array], value: Value) -> Array:
        """Return the whole array of shards; an element is that of the last device that has it.

        Args:
            shards: The shard of each device.
            value: The local value that has them.
        """
        parts = self.parts(static_shape(value.type) or (), self.program.sharding(value), shards[0].ndim)
        sizes = [max(part[dim].stop for part in parts) for dim in range(shards[0].ndim)]
        result = np.zeros(sizes, shards[0].dtype)
        for shard, part in zip(shards, parts, strict=True):
            result[part] = shard
        return result

    def parts(self, shape: Sequence[int], sharding: TensorSharding | None, rank: int) -> list[Part]:
        """Return the part of a tensor that each device has.

        Args:
            shape: The sizes of a shard.
            sharding: The sharding, or None.
            rank: The rank.
        """
        columns: list[list[slice]] = []
        for dim in range(rank):
            places = [0] * self.count
            if sharding is not None and sharding.of_dimension(dim).axes:
                places = shard_positions(self._mesh(sharding), sharding.of_dimension(dim).axes)
            columns.append([slice(place * shape[dim], (place + 1) * shape[dim]) for place in places])
        return [tuple(column[device] for column in columns) for device in range(self.count)]

    def _mesh(self, sharding: TensorSharding) -> Mesh:
        return sharding.mesh if isinstance(sharding.mesh, Mesh) else self.program.meshes[sharding.mesh]
