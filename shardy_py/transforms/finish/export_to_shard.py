"""Write shardings in MLIR's own dialect ``shard``, for compilers that have it and not Shardy's."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import RawAttribute, SymbolRef
from shardy_py.ir.graph.op_names import CONSTRAINT, MESH, RESHARD
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.shardings import entry_arguments, mesh_of
from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import NoFields

_TYPE = OpaqueType("!shard.sharding")
_HINT = "inline-meshes=false keeps the names of meshes; the dialect shard has whole axes of ordered devices only"


class ExportToShardPass(NoFields):
    """Replace meshes by grids, and give each sharded value its sharding by ``shard.shard`` behind it.

    Constraints and reshards become ``shard.shard`` themselves. Open dimensions and priorities are lost.
    """

    name: ClassVar[str] = "shardy-export-to-shard"

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite all functions.

        Raises:
            UnsupportedError: a mesh or a sharding has no counterpart, or the program has collectives.
        """
        for function in program.functions.values():
            if function.regions:
                self._rewrite(program, function)
        for op in list(program.body.ops):
            if op.name == MESH:
                _replace_mesh(op)
        program.shardings.clear()

    def _rewrite(self, program: Program, function: Op) -> None:
        block = function.regions[0].blocks[0]
        ops = list(block.walk())
        for value in entry_arguments(function):
            _shard_value(program, value)
        for op in ops:
            if op.name in (CONSTRAINT, RESHARD):
                _replace_constraint(program, op)
            elif op.name.startswith("sdy."):
                message = "the op has no counterpart in the dialect shard"
                raise UnsupportedError(Diagnostic("no-counterpart", message, op.location, op.name, _HINT))
            else:
                for value in op.results:
                    _shard_value(program, value)
        end = block.terminator
        if end is None:
            return
        for number, result in enumerate(function.function_results):
            sharding = program.sharding(result)
            if sharding is not None and isinstance(result.type, TensorType):
                definition = _definition(program, sharding, end)
                shard = _shard(program, end.operands[number], definition.result)
                block.insert_before(end, definition)
                block.insert_before(end, shard)
                end.set_operand(number, shard.result)


def _shard_value(program: Program, value: Value) -> None:
    """Insert the sharding of a value behind it, for all its users."""
    sharding = program.sharding(value)
    if sharding is None or not isinstance(value.type, TensorType):
        return
    definition = _definition(program, sharding, value.owning_op)
    shard = _shard(program, value, definition.result)
    value.insert_after(shard)
    value.insert_after(definition)
    value.replace_all_uses_with(shard.result, except_op=shard)


def _replace_constraint(program: Program, op: Op) -> None:
    definition = _definition(program, op.attributes["sharding"], op)
    shard = _shard(program, op.operands[0], definition.result)
    for new in (definition, shard):
        op.parent.insert_before(op, new)  # type: ignore[union-attr]
    op.results[0].replace_all_uses_with(shard.result)
    op.erase()


def _shard(program: Program, value: Value, sharding: Value) -> Op:
    return Op(program, "shard.shard", [value, sharding], [value.type])


def _definition(program: Program, sharding: TensorSharding, near: Op) -> Op:
    """Return the op that defines a sharding.

    Raises:
        UnsupportedError: it has no counterpart.
    """
    names = [axis.name for axis in mesh_of(sharding, program.meshes).axes]
    axes = [axis for dim in sharding.dim_shardings for axis in dim.axes]
    reason = ""
    if isinstance(sharding.mesh, Mesh):
        reason = "has a mesh without a name"
    elif sharding.unreduced_axes:
        reason = "has unreduced axes"
    elif any(axis.sub_axis is not None for axis in axes):
        reason = "has a part of an axis"
    if reason:
        message = f"the sharding {sharding} {reason}, which the dialect shard does not know"
        raise UnsupportedError(Diagnostic("no-counterpart", message, near.location, near.name, _HINT))
    lists = [[names.index(axis.name) for axis in dim.axes] for dim in sharding.dim_shardings]
    attributes = {
        "grid": SymbolRef(str(sharding.mesh)),
        "operandSegmentSizes": RawAttribute("array<i32: 0, 0>"),
        "split_axes": RawAttribute(f"#shard<axisarray{lists}>"),
        "static_halo_sizes": RawAttribute("array<i64>"),
        "static_sharded_dims_offsets": RawAttribute("array<i64>"),
    }
    return Op(program, "shard.sharding", (), [_TYPE], attributes)


def _replace_mesh(op: Op) -> None:
    mesh, name = op.attributes["mesh"], op.attributes["sym_name"]
    if mesh.device_ids or not mesh.axes:
        message = f"the mesh @{name} has an order of devices of its own, or none, which the dialect shard does not know"
        raise UnsupportedError(Diagnostic("no-counterpart", message, op.location, op.name, _HINT))
    sizes = ", ".join(str(axis.size) for axis in mesh.axes)
    attributes = {"sym_name": name, "shape": RawAttribute(f"array<i64: {sizes}>")}
    op.parent.insert_before(op, Op(op.program, "shard.grid", (), (), attributes))  # type: ignore[union-attr]
    op.erase()
