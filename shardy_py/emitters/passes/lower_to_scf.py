"""Accesses under conditions and reductions over lanes in ops of ``scf``, ``gpu`` and ``func``."""

from __future__ import annotations

from attrs import frozen
from xdsl.dialects import arith, builtin, func, scf, tensor
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from shardy_py.emitters.dialect.gpu import ShuffleOp
from shardy_py.emitters.dialect.memory_ops import PredicatedExtractOp, PredicatedInsertOp, ShuffleReduceOp
from shardy_py.emitters.passes.base import KernelContext, add_before, insert_before, replace, walk_ops


@frozen
class LowerToScf:
    """Turn predicated accesses into ``scf.if``, reductions over lanes into shuffles and calls of the combiner."""

    name: str = "lower-to-scf"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in walk_ops(module.body):
            if isinstance(op, PredicatedExtractOp):
                assert isinstance(op.source.type, builtin.TensorType)
                read = tensor.ExtractOp(op.source, list(op.indices), op.source.type.element_type)
                replace(op, [_branch(op, op.condition, read, op.fallback)])
            elif isinstance(op, PredicatedInsertOp):
                written = tensor.InsertOp(op.value, op.dest, list(op.indices))
                replace(op, [_branch(op, op.condition, written, op.dest)])
            elif isinstance(op, ShuffleReduceOp):
                replace(op, _combined(op, context.device.threads_per_warp))


def _branch(before: Operation, condition: SSAValue, access: Operation, otherwise: SSAValue) -> SSAValue:
    then = Block([access, scf.YieldOp(access.results[0])])
    types: list[Attribute] = [otherwise.type]
    return insert_before(before, scf.IfOp(condition, types, Region(then), Region(Block([scf.YieldOp(otherwise)]))))


def _combined(op: ShuffleReduceOp, lanes: int) -> list[SSAValue]:
    """Return the values combined with those of the lanes further down, the farthest first."""
    values = list(op.arguments)
    width = insert_before(op, arith.ConstantOp(builtin.IntegerAttr(lanes, builtin.i32)))
    distance = op.max_distance.value.data
    while distance:
        offset = insert_before(op, arith.ConstantOp(builtin.IntegerAttr(distance, builtin.i32)))
        others = [insert_before(op, ShuffleOp(value, offset, width)) for value in values]
        call = func.CallOp(op.combiner, [*values, *others], [value.type for value in values])
        add_before(op, call)
        values = list(call.results)
        distance //= 2
    return values
