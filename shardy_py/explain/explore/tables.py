"""Tables of a page: distinct things by number, and the numbers that a browser draws shardings and meshes from."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from attrs import field

from shardy_py.api.summary import tensor_bytes
from shardy_py.ir.graph.types import Type, static_shape
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

_T = TypeVar("_T", bound=Hashable)


@define(eq=False)
class Interned(Generic[_T]):
    """Distinct things, numbered in the order in which they come.

    Attributes:
        numbers: Thing to number.
    """

    numbers: dict[_T, int] = field(factory=dict)

    def __call__(self, thing: _T) -> int:
        """Return the number of a thing."""
        return self.numbers.setdefault(thing, len(self.numbers))

    def __iter__(self) -> Iterable[_T]:
        return iter(self.numbers)


@define(eq=False)
class Columns:
    """Rows, column by column.

    Attributes:
        columns: Name to the values of all rows.
    """

    columns: dict[str, list[Any]]

    @classmethod
    def of(cls, *names: str) -> Columns:
        """Return a table without rows.

        Args:
            names: The names of its columns.
        """
        return cls({name: [] for name in names})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def add(self, **row: Any) -> int:
        """Add a row, with a value for each column, and return its number."""
        for name, column in self.columns.items():
            column.append(row[name])
        return len(self) - 1

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]

    def to_json(self) -> Mapping[str, list[Any]]:
        """Return the columns as plain lists."""
        return self.columns


@define(eq=False)
class DistinctShardings:
    """Distinct shardings and types of a program.

    Attributes:
        meshes: The meshes by name.
        mesh_numbers: The meshes met, by number.
        shardings: The shardings, by number.
        types: The types, by number.
    """

    meshes: dict[str, Mesh]
    mesh_numbers: Interned[Mesh] = field(factory=Interned)
    shardings: Interned[TensorSharding] = field(factory=Interned)
    types: Interned[Type] = field(factory=Interned)
    _bytes: dict[tuple[Type, TensorSharding | None], int] = field(factory=dict)

    def number(self, sharding: TensorSharding | None) -> int:
        """Return the number of a sharding; -1 for none."""
        return -1 if sharding is None else self.shardings(sharding)

    def mesh(self, sharding: TensorSharding) -> Mesh | None:
        """Return the mesh of a sharding."""
        return resolve_mesh(sharding.mesh, self.meshes)

    def bytes(self, type_: Type, sharding: TensorSharding | None = None) -> int:
        """Return the bytes of a tensor, or of its shard on one device; 0 where they are not known."""
        key = (type_, sharding)
        if key not in self._bytes:
            mesh = None if sharding is None else self.mesh(sharding)
            self._bytes[key] = tensor_bytes(type_, sharding, mesh) or 0
        return self._bytes[key]

    def to_json(self) -> dict[str, Any]:
        """Return the tables as plain lists and dictionaries."""
        shardings = [self._sharding_data(item) for item in self.shardings.numbers]
        types = [
            {"text": str(item), "shape": static_shape(item), "bytes": self.bytes(item)} for item in self.types.numbers
        ]
        meshes = [
            {
                "text": str(mesh),
                "axes": [[axis.name, axis.size] for axis in mesh.axes],
                "devices": list(mesh.device_ids),
            }
            for mesh in self.mesh_numbers.numbers
        ]
        return {"meshes": meshes, "shardings": shardings, "types": types}

    def _sharding_data(self, sharding: TensorSharding) -> dict[str, Any]:
        mesh = self.mesh(sharding)
        return {
            "text": str(sharding),
            "mesh": -1 if mesh is None else self.mesh_numbers(mesh),
            "dims": [_axes_data(dim.axes, mesh) for dim in sharding.dim_shardings],
            "dimTexts": [str(dim) for dim in sharding.dim_shardings],
            "replicated": _axes_data(sharding.replicated_axes, mesh),
            "unreduced": _axes_data(sharding.unreduced_axes, mesh),
        }


def _axes_data(axes: Iterable[AxisRef], mesh: Mesh | None) -> list[list[Any]]:
    return [axis_data(axis, mesh) for axis in axes]


def axis_data(axis: AxisRef, mesh: Mesh | None) -> list[Any]:
    """Return an axis, or a part of one, as its name, the size of the parts before it, and its own size."""
    if axis.sub_axis is None and (mesh is None or not mesh.has_axis(axis.name)):
        return [axis.name, 1, 1]
    size = axis.sub_axis.size if axis.sub_axis is not None else mesh.axis_size(axis.name)  # type: ignore[union-attr]
    return [axis.name, axis.pre_size, size]
