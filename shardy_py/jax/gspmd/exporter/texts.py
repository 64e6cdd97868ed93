"""The shardings of values in the terms of HLO, with the manual axes that are around them."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.data_flow import shardable_value
from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.sharding.hlo import HloSharding, to_hlo_sharding
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding

Context = tuple[str | Mesh, tuple[str, ...]]
"""The mesh and the manual axes around an op; no axes outside of manual computations."""


class Texts:
    """Converts the shardings of a program, each distinct one once.

    Attributes:
        contexts: The context of functions that are called.
    """

    def __init__(self, program: Program, semantics: OpSemantics) -> None:
        self._program = program
        self._semantics = semantics
        self._meshes = program.meshes
        self._known: dict[tuple[TensorSharding, tuple[str, ...]], HloSharding] = {}
        self._around: dict[Block, Context] = {}
        self.contexts: dict[Op, Context] = {}

    def around(self, block: Block | None) -> Context:
        """Return the manual axes in a block, and the mesh they are on; no axes outside of manual computations."""
        if block is None:
            return Mesh(), ()
        context = self._around.get(block)
        if context is None:
            op = block.parent_op
            mesh, axes = (Mesh(), ()) if op is None else self.contexts.get(op) or self.around(op.parent)
            if op is not None and op.name == MANUAL_COMPUTATION:
                op_mesh = mesh_of(op)
                mesh, axes = mesh if op_mesh is None else op_mesh, (*axes, *op.attributes["manual_axes"].names)
            context = self._around[block] = mesh, axes
        return context

    def is_all_manual(self, block: Block | None) -> bool:
        """Return whether all axes are manual in a block."""
        mesh, axes = self.around(block)
        named = mesh if isinstance(mesh, Mesh) else self._meshes[mesh]
        return bool(axes) and all(axis.name in axes for axis in named.axes)

    def of_value(self, value: Value, block: Block | None) -> HloSharding:
        """Return the sharding of a value in a block; without one, it is replicated along all free axes."""
        sharding = self._program.shardings.get(value.id)
        if sharding is None:
            carrier = shardable_value(value, self._semantics)
            sharding = None if carrier is None else self._program.shardings.get(carrier.id)
        return self.of(sharding, value, block)

    def has_sharding(self, value: Value) -> bool:
        """Return whether the program has a sharding for a value itself."""
        return value.id in self._program.shardings

    def of(self, sharding: TensorSharding | None, value: Value, block: Block | None) -> HloSharding:
        """Return a sharding of a value in a block."""
        mesh, axes = self.around(block)
        if sharding is None:
            if not axes:
                return HloSharding.replicated()
            sharding = TensorSharding.fully_closed(mesh, value.type.rank if isinstance(value.type, TensorType) else 0)
        key = sharding, axes
        hlo_sharding = self._known.get(key)
        if hlo_sharding is None:
            named = sharding.mesh if isinstance(sharding.mesh, Mesh) else self._meshes[sharding.mesh]
            if axes and not named.axes:
                # Nothing is on the empty mesh, which has no manual axes either.
                sharding, named = self._over(mesh, sharding)
            hlo_sharding = self._known[key] = to_hlo_sharding(sharding, named, manual_axes=axes)
        return hlo_sharding

    def _over(self, mesh: str | Mesh, sharding: TensorSharding) -> tuple[TensorSharding, Mesh]:
        named = mesh if isinstance(mesh, Mesh) else self._meshes[mesh]
        return TensorSharding.fully_closed(mesh, sharding.rank), named


def mesh_of(op: Op) -> str | Mesh | None:
    """Return the mesh of a manual computation; None where it has neither operands nor results."""
    shardings: Sequence[TensorSharding] = (
        *op.attributes["in_shardings"].shardings,
        *op.attributes["out_shardings"].shardings,
    )
    return next((sharding.mesh for sharding in shardings), None)
