"""Bytes of a value on one device."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from shardy_py.api.summary import local_shape, sharding_of, tensor_bytes
from shardy_py.cost.memory import padded_tensor_bytes
from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.types import OpaqueType, Type, static_shape
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.layout.policies import LayoutPolicy
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

_Key = tuple[Type, TensorSharding | None]


class LocalSizes:
    """Measures the largest shard of every value of a program: each dimension divided by its axes and rounded up.

    Attributes:
        unknown: The types of tensors whose size is not known; they count as nothing.
        table: The shardings that values carry themselves, by their ids.
    """

    def __init__(self, program: Program, semantics: OpSemantics, policy: LayoutPolicy | None) -> None:
        self.unknown: dict[str, None] = {}
        self.table = program.shardings
        self._program = program
        self._semantics = semantics
        self._policy = policy
        self._bytes: dict[_Key, int] = {}
        self._value_bytes: dict[int, int] = {}
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._shardings: dict[int, TensorSharding | None] = {}
        self._meshes: dict[TensorSharding, Mesh | None] = {}

    def sharding(self, value: Value) -> TensorSharding | None:
        """Return the sharding of a value, also where another value carries it."""
        sharding = self.table.get(value.id)
        if sharding is not None:
            return sharding
        if value.id not in self._shardings:
            self._shardings[value.id] = sharding_of(self._program, value, self._semantics)
        return self._shardings[value.id]

    def mesh(self, sharding: TensorSharding) -> Mesh | None:
        """Return the mesh of a sharding."""
        if sharding not in self._meshes:
            mesh = sharding.mesh
            self._meshes[sharding] = mesh if isinstance(mesh, Mesh) else self._named_meshes.get(mesh)
        return self._meshes[sharding]

    @cached_property
    def _named_meshes(self) -> dict[str, Mesh]:
        return self._program.meshes

    @property
    def meshes(self) -> list[Mesh]:
        """The meshes of the values asked for, in the order in which they were met."""
        return list(dict.fromkeys(mesh for mesh in self._meshes.values() if mesh is not None))

    def bytes(self, value: Value) -> int:
        """Return the bytes of a value on one device."""
        size = self._value_bytes.get(value.id)
        if size is not None:
            return size
        key = (value.type, self.sharding(value))
        size = self._bytes.get(key)
        if size is None:
            size = self._bytes[key] = self._measure(*key)
        self._value_bytes[value.id] = size
        return size

    def shape(self, value: Value) -> tuple[int, ...]:
        """Return the shape of the largest shard of a value; () for what has no known shape."""
        shape = self._shapes.get(value.id)
        if shape is None:
            shape = self._shapes[value.id] = self._measure_shape(value)
        return shape

    def total(self, values: Iterable[Value]) -> int:
        """Return the bytes of several values on one device."""
        return sum(self.bytes(value) for value in values)

    def _measure_shape(self, value: Value) -> tuple[int, ...]:
        shape = static_shape(value.type)
        if shape is None:
            return ()
        sharding = self.sharding(value)
        return local_shape(shape, sharding, self.mesh(sharding) if sharding is not None else None)

    def _measure(self, type_: Type, sharding: TensorSharding | None) -> int:
        mesh = self.mesh(sharding) if sharding is not None else None
        if self._policy is None:
            size = tensor_bytes(type_, sharding, mesh)
        else:
            size = padded_tensor_bytes(type_, sharding, mesh, self._policy)
        if size is not None:
            return size
        # A token, for example, takes no memory.
        if not isinstance(type_, OpaqueType):
            self.unknown[str(type_)] = None
        return 0
