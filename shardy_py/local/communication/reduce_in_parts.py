"""Partial results that are equal on several devices, combined in parts: each of these devices combines one part.

An all-reduce sends nearly twice the shard that it combines, however many devices hold the same one. A gather of the
combined parts sends the shard less than once, so that from three devices on along the reduced axes the two together
send less.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from attrs import evolve

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.enum_attributes import combiner_of_collective
from shardy_py.ir.graph.op_names import ALL_REDUCE, MANUAL_COMPUTATION
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import static_shape
from shardy_py.ir.graph.walk import ops_among, ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.choices import meshes_by_name
from shardy_py.local.communication.explicit_steps import write_collectives
from shardy_py.local.communication.moves import all_reduce_bytes, moved_axes, reshard_bytes
from shardy_py.local.communication.partial_choices import COMBINERS
from shardy_py.local.communication.report import CommunicationChange, record_change
from shardy_py.local.communication.rewriting import reshard
from shardy_py.local.communication.routes import SUMS, Routes, source_of
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.combiner import Combiner, reduction_op_text
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.values import NoFields

_LEAST_GAIN = 1024.0
"""The bytes that the time for one collective more is worth at least."""


class ReduceInPartsPass(NoFields):
    """Cut partial results along axes on which they are equal, combine the parts, and gather them, where less is sent.

    Only sizes that divide are cut. Sums are not reordered.
    """

    name: ClassVar[str] = "reduce-in-parts"

    def run(self, program: Program, context: PassContext) -> None:
        """Cut what the all-reduces and reduce-scatters of all functions combine."""
        routes, meshes = Routes(program, context.semantics), meshes_by_name(program)
        # Values keep one mark only, that of the axes along which they became partial last.
        varying = {axis.name for item in context.partial_values.values() for axis in item.unreduced_axes}
        # Devices differ along manual axes, whatever shardings say, also in functions that are called there.
        for op in ops_named(program, MANUAL_COMPUTATION):
            varying.update(op.attributes["manual_axes"].names)
        changes = [_reduce_in_parts(op, routes, meshes, varying) for op in list(ops_among(program, SUMS))]
        for change in changes:
            if change is not None:
                record_change(context, change)
        if any(changes):
            write_collectives(program, context.semantics, context)


def _reduce_in_parts(
    op: Op, routes: Routes, meshes: Mapping[str, Mesh], varying: Collection[str]
) -> CommunicationChange | None:
    """Combine parts in place of all that a collective combines, and return what was done, or None."""
    (operand,), (result,) = op.operands, op.results
    source, target, after = routes.sharding(operand), routes.sharding(result), op.next
    mesh = None if target is None else meshes.get(str(target.mesh))
    shape = static_shape(result.type)
    if mesh is None or target is None or shape is None or op.parent is None or after is None:
        return None
    source = source or TensorSharding.fully_closed(target.mesh, target.rank)
    summed = {axis.name for route in routes.of(source_of(operand)) for axis in route.summed_axes}
    used_axes = {axis.name for axis in (*source.axes(), *target.axes())} | summed | set(varying)
    cut, cut_result = _cut(source, target, shape, mesh, used_axes)
    gathered = reshard_bytes(result.type, cut_result, target, mesh)
    if gathered is None:
        return None
    axes, share = moved_axes(op), 1.0 if op.name == ALL_REDUCE else 0.5
    before, reduced = (share * all_reduce_bytes(result.type, item, axes, mesh) for item in (source, cut))
    if reduced + gathered > before - _LEAST_GAIN:
        return None
    combiner = combiner_of_collective(op, routes.semantics)
    word = next((word for word, known in COMBINERS.items() if known is combiner), None)
    if word is None:
        return None
    if combiner is not Combiner.ADD:
        # It cannot be read off the op that makes the partial results any more.
        op.attributes["reduction_op"] = RawAttribute(reduction_op_text(word))
    uses = list(result.uses)
    op.set_operand(0, reshard(op.program, operand, cut, op.parent, op))
    op.attributes["out_sharding"] = cut_result
    op.program.shardings[result.id] = cut_result
    arrived = reshard(op.program, result, target, op.parent, after)
    for user, number in uses:
        user.set_operand(number, arrived)
    producer = source_of(operand).defining_op
    name = "an argument" if producer is None else producer.name
    return CommunicationChange(f"{name} is combined in parts", before, reduced + gathered, op.location)


def _cut(
    source: TensorSharding, target: TensorSharding, shape: tuple[int, ...], mesh: Mesh, used_axes: Collection[str]
) -> tuple[TensorSharding, TensorSharding]:
    """Return the shardings before and after a collective, along further axes in the first dimensions that they divide.

    Args:
        source: The sharding of what is combined.
        target: The sharding of the result.
        shape: The shape of both.
        mesh: The mesh.
        used_axes: The axes that are not free.
    """
    dims = {
        number: DimensionSharding(dim.axes)
        for number, dim in enumerate(source.dim_shardings)
        # What a reduce-scatter cuts itself would be in another order.
        if dim.axes == target.of_dimension(number).axes
    }
    for axis in mesh.axes:
        for number, dim in dims.items():
            longer = DimensionSharding((*dim.axes, AxisRef(axis.name)))
            if axis.name not in used_axes and shape[number] and shape[number] % longer.sharded_size(mesh) == 0:
                dims[number] = longer
                break
    return _with_dims(source, dims), _with_dims(target, dims)


def _with_dims(sharding: TensorSharding, dims: Mapping[int, DimensionSharding]) -> TensorSharding:
    closed = sharding.closed_like()
    numbered = enumerate(closed.dim_shardings)
    return evolve(closed, dim_shardings=tuple(evolve(dim, axes=dims.get(n, dim).axes) for n, dim in numbered))
