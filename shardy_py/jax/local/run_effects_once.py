"""Give calls with side effects to one device: a program does once what it says once, however many devices run it."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION, RESHARD
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import mesh_of
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.callable.callbacks import has_side_effects
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields


class RunEffectsOncePass(NoFields):
    """Give the results of custom calls with side effects a sharding on the first device.

    JAX does so for callbacks already. A result that propagation has sharded is resharded behind the call. Calls in a
    manual computation stay: what stands there, each device does.
    """

    name: ClassVar[str] = "run-effects-once"

    def run(self, program: Program, context: PassContext) -> None:
        """Look at the calls of all functions."""
        devices = [mesh.device_ids or range(mesh.total_size) for mesh in program.meshes.values() if mesh.axes]
        if sum(map(len, devices)) < 2:
            return
        first = Mesh((), (min(min(numbers) for numbers in devices),))
        for op in ops_named(program, "stablehlo.custom_call"):
            if has_side_effects(op) and not _is_manual(op):
                for value in op.results:
                    if isinstance(value.type, TensorType):
                        _put_on(program, op, value, first)


def _put_on(program: Program, op: Op, value: Value, mesh: Mesh) -> None:
    """Give a result a sharding on one device, and its users a reshard of it."""
    before = program.shardings.get(value.id)
    if before is not None and mesh_of(before, program.meshes).is_maximal:
        return
    program.shardings[value.id] = TensorSharding(mesh)
    if before is None or op.parent is None:
        return
    users = list(value.uses)
    reshard = Op(program, RESHARD, [value], [value.type], {})
    op.parent.insert_after(op, reshard)
    program.shardings[reshard.result.id] = before
    if users:
        value.replace_all_uses_with(reshard.result, except_op=reshard)


def _is_manual(op: Op) -> bool:
    parent = op.parent_op
    while parent is not None and parent.name != MANUAL_COMPUTATION:
        parent = parent.parent_op
    return parent is not None
