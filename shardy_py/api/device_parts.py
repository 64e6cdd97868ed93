"""The parts of tensors that devices hold."""

from __future__ import annotations

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.types import static_shape
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.shard_positions import shard_positions
from shardy_py.sharding.tensor import TensorSharding

Part = tuple[slice, ...]
"""A part of a tensor: one slice per dimension."""


def device_parts(program: Program, value: Value, sharding: TensorSharding | None) -> tuple[Part, ...]:
    """Return the part of a value that each device holds, by the number of the device.

    Args:
        program: The program, with its meshes.
        value: The value.
        sharding: Its sharding; None where every device has all of it.

    Raises:
        UnsupportedError: the value has no shape, or a dynamic size.
    """
    shape = static_shape(value.type)
    if shape is None:
        hint = "give dynamic sizes, as by sizes={'arg0.0': 64}"
        raise UnsupportedError(Diagnostic("no-shape", f"the parts of a {value.type} are not known", hint=hint))
    mesh = _mesh_of(program, sharding)
    columns = [_column(size, sharding, dim, mesh) for dim, size in enumerate(shape)]
    return tuple(tuple(column[device] for column in columns) for device in range(mesh.total_size))


def _mesh_of(program: Program, sharding: TensorSharding | None) -> Mesh:
    if sharding is None:
        return next((mesh for mesh in program.meshes.values() if mesh.axes), Mesh())
    return sharding.mesh if isinstance(sharding.mesh, Mesh) else program.meshes[sharding.mesh]


def _column(size: int, sharding: TensorSharding | None, dim: int, mesh: Mesh) -> list[slice]:
    """Return the slice of a dimension that each device holds."""
    axes = () if sharding is None else sharding.of_dimension(dim).axes
    if not axes or sharding is None:
        return [slice(0, size)] * mesh.total_size
    part = -(-size // sharding.of_dimension(dim).sharded_size(mesh))
    positions = shard_positions(mesh, axes)
    return [slice(min(at * part, size), min((at + 1) * part, size)) for at in positions]
