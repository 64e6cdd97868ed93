"""Add up partial results at once where some are sharded unevenly: XLA ends the process there."""

from __future__ import annotations

from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.program import Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.exported_ops import RESHARDS
from shardy_py.values import frozen


@frozen
class ReduceUnevenValuesPass:
    """Drop the unreduced axes of all values where one that has some is sharded along a dimension they do not divide."""

    name: ClassVar[str] = "xla-reduce-uneven-values"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the shardings in the table, and those that ops hold."""
        table = program.shardings
        ops = all_ops(program)
        if not any(_is_uneven(program, value) for op in ops for value in op.results):
            return
        for key, sharding in table.items():
            table[key] = _reduced(sharding)
        for op in ops:
            name = RESHARDS.get(op.name)
            if name is not None:
                op.attributes[name] = _reduced(op.attributes[name])


def _reduced(sharding: TensorSharding) -> TensorSharding:
    return evolve(sharding, unreduced_axes=()) if sharding.unreduced_axes else sharding


def _is_uneven(program: Program, value: Value) -> bool:
    sharding = program.shardings.get(value.id)
    if sharding is None or not sharding.unreduced_axes or not isinstance(value.type, TensorType):
        return False
    mesh = resolve_mesh(sharding.mesh, program.meshes)
    sizes = zip(value.type.shape, sharding.dim_shardings, strict=True)
    return mesh is not None and any(size is None or size % dim.sharded_size(mesh) for size, dim in sizes)
