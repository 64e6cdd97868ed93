"""The meshes of the shardings of GSPMD in a module."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.op_names import MESH
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.symbols import SYMBOL_NAME, SymbolTable
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.sharding.hlo import HloSharding, derive_meshes, find_mesh, from_hlo_sharding, manual_axes_of
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

_COUNT = "mhlo.num_partitions"
_EMPTY = "empty_mesh"


@define
class Meshes:
    """Conversion of shardings of GSPMD to the meshes of a program.

    Args:
        meshes: The meshes with axes by name.
        default: The one of shardings that no mesh contradicts, such as a replicated one.
    """

    meshes: dict[str, Mesh]
    default: str

    @classmethod
    def of(cls, program: Program, shardings: Iterable[HloSharding], *, may_add: bool) -> Meshes:
        """Return the meshes of a program; add those that some shardings need.

        Raises:
            OptionError: a mesh has to be added, but none may be.
        """
        meshes = {name: mesh for name, mesh in program.meshes.items() if mesh.axes}
        homeless = [sharding for sharding in _leaves(shardings) if find_mesh(sharding, meshes) is None]
        if homeless and meshes and not may_add:
            message = (
                f"the sharding {homeless[0]} of the module cannot be said by axes of {next(iter(meshes.values()))}"
            )
            hint = "give a mesh with as many devices whose axes the tiles are parts of, or none, then one is derived"
            raise OptionError(Diagnostic("mesh-mismatch", message, hint=hint))
        count = program.attributes.get(_COUNT)
        is_several = isinstance(count, int) and count > 1 and not meshes
        for mesh in derive_meshes(homeless, device_count=count if is_several else None):
            meshes[_add(program, mesh, "mesh")] = mesh
        default = next(iter(meshes), None)
        return cls(meshes, _empty_mesh(program) if default is None else default)

    def name_of(self, sharding: HloSharding) -> str:
        """Return the name of the mesh of a sharding."""
        return self.default if sharding.tiles is None else find_mesh(sharding, self.meshes) or self.default

    def read(
        self, sharding: HloSharding, type_: Type, *, open_dims: Collection[int] = (), mesh: str | None = None
    ) -> TensorSharding:
        """Return the sharding of a tensor, without manual axes.

        Args:
            sharding: The sharding.
            type_: The type of the tensor.
            open_dims: The dimensions that may be sharded further.
            mesh: The mesh if no other has to be.

        Raises:
            VerificationError: the sharding does not fit the tensor.
        """
        rank = type_.rank if isinstance(type_, TensorType) else 0
        name = mesh if mesh is not None and sharding.tiles is None else self.name_of(sharding)
        return from_hlo_sharding(
            sharding, self.meshes.get(name, Mesh()), rank=rank, mesh_name=name, open_dims=open_dims
        )

    def manual_axes(self, sharding: HloSharding, mesh: str) -> tuple[str, ...]:
        """Return the manual axes of a sharding on a mesh."""
        return manual_axes_of(sharding, self.meshes.get(mesh, Mesh()))


def _leaves(shardings: Iterable[HloSharding]) -> list[HloSharding]:
    """Return the distinct tiled shardings, also those in tuples."""
    leaves: dict[HloSharding, None] = {}
    for sharding in shardings:
        for leaf in sharding.elements or (sharding,):
            if leaf.tiles is not None:
                leaves[leaf] = None
    return list(leaves)


def _add(program: Program, mesh: Mesh, name: str) -> str:
    """Add a mesh after those of the program and return its name."""
    others = [op for op in program.body.ops if op.name == MESH]
    op = Op(program, MESH, attributes={SYMBOL_NAME: name, "mesh": mesh})
    symbols = SymbolTable(program)
    program.body.insert_after(others[-1] if others else None, op)
    return symbols.insert(op)


def _empty_mesh(program: Program) -> str:
    existing = next((name for name, mesh in program.meshes.items() if mesh.is_empty), None)
    return _add(program, Mesh(), _EMPTY) if existing is None else existing
