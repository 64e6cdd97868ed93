"""Gather tensors before ops that XLA's partitioner computes wrongly, or not at all, from parts of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import CONSTRAINT
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.jax.form.constrain_values import closed, has_dimensions
from shardy_py.jax.form.faulty_dims import (
    CONVOLUTION,
    dilated_dims,
    dilated_spatial_dims,
    index_vector_dims,
    indices_of,
    overlapping_windows,
    scattered_sum_dims,
    sharded_kernel_dims,
)
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import frozen

_FFT = "stablehlo.fft"
_PRODUCTS = ("stablehlo.dot_general", CONVOLUTION)
_SELECT_AND_SCATTER = "stablehlo.select_and_scatter"
_LOOKED_UP = ("stablehlo.gather", "stablehlo.scatter")
_REDUCE_WINDOW = "stablehlo.reduce_window"
_DILATED = ("stablehlo.pad", _REDUCE_WINDOW)


@frozen
class GatherOperandsPass:
    """Replicate some dimensions of the operands and results of a few ops, between constraints.

    ``stablehlo.fft``: XLA gathers all of it anyway, but on host devices it then may choose a layout that its kernel
    refuses when it runs; layouts are fixed along with the shardings.

    ``stablehlo.select_and_scatter``, ``pad``, ``reduce_window``: along some dimensions XLA's partitioner gives wrong
    numbers, or ends the process.

    ``stablehlo.dot_general``, ``convolution``: where XLA's partitioner scatters a sum wrongly, all of it is summed up
    first. A kernel is replicated where parts of the sum would count several times, and a dilated input along dimensions
    that the result has at another place.

    ``reduce_window`` with several operands: XLA refuses shardings that differ.

    ``gather``, ``scatter``: XLA refuses indices that are sharded along the dimension of their parts.
    """

    name: ClassVar[str] = "xla-gather-operands"

    def run(self, program: Program, context: PassContext) -> None:
        """Look at the ops of all functions."""
        for op in ops_named(program, _FFT, _SELECT_AND_SCATTER, *_DILATED, *_PRODUCTS):
            dims = _dims_to_gather(program, op)
            for number, operand in enumerate(op.operands if op.name not in _PRODUCTS else ()):
                if has_dimensions(operand):
                    _gather_operand(program, op, number, dims)
            for number in range(len(op.results)):
                _gather_result(program, op, number, dims)
            if op.name == _FFT:
                _fix_layouts(program, op)
            if op.name == CONVOLUTION:
                pairs = dilated_spatial_dims(op)
                _gather_operand(program, op, 0, [dim for dim, _ in pairs])
                _gather_result(program, op, 0, [dim for _, dim in pairs])
                _gather_operand(program, op, 1, sharded_kernel_dims(program, op))
            if op.name == _REDUCE_WINDOW:
                _align(program, op)
        for op in ops_named(program, *_LOOKED_UP):
            _gather_operand(program, op, indices_of(op), index_vector_dims(op))


def _dims_to_gather(program: Program, op: Op) -> Collection[int]:
    if op.name == _FFT:
        return range(len(op.operands[0].shape))
    if op.name in _PRODUCTS:
        return scattered_sum_dims(program, op)
    return overlapping_windows(op) if op.name == _SELECT_AND_SCATTER else dilated_dims(program, op)


def _without(sharding: TensorSharding | None, dims: Collection[int]) -> TensorSharding | None:
    """Return a sharding with some dimensions replicated; None where they are anyway."""
    if sharding is None or not any(sharding.dim_shardings[dim].axes for dim in dims):
        return None
    return closed(sharding.with_whole_dims(dims))


def _gather_operand(program: Program, op: Op, number: int, dims: Collection[int]) -> None:
    sharding = _without(program.shardings.get(op.operands[number].id), dims)
    if sharding is not None:
        reshard_operand(program, op, number, sharding)


def _gather_result(program: Program, op: Op, number: int, dims: Collection[int]) -> None:
    sharding = _without(program.shardings.get(op.results[number].id), dims)
    if sharding is not None:
        reshard_result(program, op, sharding, number)


def _fix_layouts(program: Program, op: Op) -> None:
    """Lay the operands and results of an op out row by row, next to the op."""
    for number, operand in enumerate(op.operands):
        if has_dimensions(operand):
            new = _layout(program, operand)
            op.parent.insert_before(op, new)  # type: ignore[union-attr]
            op.set_operand(number, new.results[0])
    for result in op.results:
        new = _layout(program, result)
        op.parent.insert_after(op, new)  # type: ignore[union-attr]
        result.replace_all_uses_with(new.results[0], except_op=new)


def reshard_operand(program: Program, op: Op, number: int, sharding: TensorSharding) -> None:
    """Put a constraint before an operand, unless it has the sharding."""
    value = op.operands[number]
    if program.shardings.get(value.id) != sharding:
        added = _constraint(program, value, sharding)
        op.parent.insert_before(op, added)  # type: ignore[union-attr]
        op.set_operand(number, added.results[0])


def reshard_result(program: Program, op: Op, sharding: TensorSharding, number: int = 0) -> None:
    """Give a result another sharding, and put a constraint to what was decided behind it, unless that is the same."""
    result = op.results[number]
    decided = program.shardings.get(result.id)
    program.shardings[result.id] = sharding
    if decided is not None and closed(decided) != sharding:
        added = _constraint(program, result, closed(decided))
        op.parent.insert_after(op, added)  # type: ignore[union-attr]
        result.replace_all_uses_with(added.results[0], except_op=added)


def _align(program: Program, op: Op) -> None:
    """Give all inputs and results the sharding of the first result."""
    first = program.shardings.get(op.results[0].id)
    if first is None or len(op.results) == 1:
        return
    for number in range(len(op.results)):
        reshard_operand(program, op, number, closed(first))
        reshard_result(program, op, closed(first), number)


def _constraint(program: Program, value: Value, sharding: TensorSharding) -> Op:
    op = Op(program, CONSTRAINT, (value,), (value.type,), {"sharding": sharding})
    program.shardings[op.results[0].id] = sharding
    return op


def _layout(program: Program, value: Value) -> Op:
    """Return an op that lays a tensor out row by row."""
    rank = len(value.shape)
    layout = RawAttribute(f"[dense<{list(reversed(range(rank)))}> : tensor<{rank}xindex>]")
    attributes = {"call_target_name": "LayoutConstraint", "operand_layouts": layout, "result_layouts": layout}
    op = Op(program, "stablehlo.custom_call", (value,), (value.type,), attributes)
    sharding = program.shardings.get(value.id)
    if sharding is not None:
        program.shardings[op.results[0].id] = sharding
    return op
