"""Gather tensors before ops that XLA's partitioner computes wrongly, or not at all, from parts of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from shardy_py.ir.attributes import RawAttribute
from shardy_py.ir.graph import Op, Program, Value
from shardy_py.ir.op_index import ops_named
from shardy_py.ir.op_names import CONSTRAINT
from shardy_py.ir.passes import PassContext
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.targets.jax.form.constrain_values import closed, has_dimensions
from shardy_py.values import frozen

_FFT = "stablehlo.fft"
_SELECT_AND_SCATTER = "stablehlo.select_and_scatter"


@frozen
class GatherOperandsPass:
    """Replicate some dimensions of the operands and results of two ops, between constraints.

    ``stablehlo.fft``: XLA gathers all of it anyway, but on host devices it then may choose a layout that its kernel
    refuses when it runs; layouts are fixed along with the shardings.

    ``stablehlo.select_and_scatter``: along a dimension that is sharded, and has windows of at least two strides, XLA's
    partitioner gives wrong numbers.
    """

    name: ClassVar[str] = "xla-gather-operands"

    def run(self, program: Program, context: PassContext) -> None:
        """Look at the ops of all functions."""
        for op in ops_named(program, _FFT, _SELECT_AND_SCATTER):
            values = [value for value in (*op.operands, *op.results) if has_dimensions(value)]
            is_fft = op.name == _FFT
            dims = range(len(values[0].shape)) if is_fft else _overlapping(op, len(values[0].shape))
            for number, operand in enumerate(op.operands):
                if has_dimensions(operand):
                    _gather_operand(program, op, number, dims, fix_layout=is_fft)
            _gather_result(program, op, dims, fix_layout=is_fft)


def _overlapping(op: Op, rank: int) -> list[int]:
    """Return the dimensions with windows of at least two strides."""
    windows = op.attributes.get("window_dimensions") or (1,) * rank
    strides = op.attributes.get("window_strides") or (1,) * rank
    return [dim for dim in range(rank) if windows[dim] > 1 and windows[dim] >= 2 * strides[dim]]


def _without(sharding: TensorSharding | None, dims: Collection[int]) -> TensorSharding | None:
    """Return a sharding with some dimensions replicated; None where they are anyway."""
    if sharding is None or not any(sharding.dim_shardings[dim].axes for dim in dims):
        return None
    return closed(sharding.with_whole_dims(dims))


def _gather_operand(program: Program, op: Op, number: int, dims: Collection[int], *, fix_layout: bool) -> None:
    value = op.operands[number]
    given = program.shardings.get(value.id)
    sharding = _without(given, dims)
    added = [] if sharding is None else [_constraint(program, value, sharding)]
    if fix_layout:
        added.append(_layout(program, added[-1].results[0] if added else value, sharding or given))
    for new in added:
        op.parent.insert_before(op, new)  # type: ignore[union-attr]
    if added:
        op.set_operand(number, added[-1].results[0])


def _gather_result(program: Program, op: Op, dims: Collection[int], *, fix_layout: bool) -> None:
    result = op.results[0]
    decided = program.shardings.get(result.id)
    sharding = _without(decided, dims)
    if sharding is not None:
        program.shardings[result.id] = sharding
    added = [_layout(program, result, sharding or decided)] if fix_layout else []
    if sharding is not None and decided is not None:
        added.append(_constraint(program, added[-1].results[0] if added else result, closed(decided)))
    if not added:
        return
    anchor = op
    for new in added:
        op.parent.insert_after(anchor, new)  # type: ignore[union-attr]
        anchor = new
    result.replace_all_uses_with(added[-1].results[0], except_op=added[0])


def _constraint(program: Program, value: Value, sharding: TensorSharding) -> Op:
    op = Op(program, CONSTRAINT, (value,), (value.type,), {"sharding": sharding})
    program.shardings[op.results[0].id] = sharding
    return op


def _layout(program: Program, value: Value, sharding: TensorSharding | None) -> Op:
    """Return an op that lays a tensor out row by row."""
    rank = len(value.shape)
    layout = RawAttribute(f"[dense<{list(reversed(range(rank)))}> : tensor<{rank}xindex>]")
    attributes = {"call_target_name": "LayoutConstraint", "operand_layouts": layout, "result_layouts": layout}
    op = Op(program, "stablehlo.custom_call", (value,), (value.type,), attributes)
    if sharding is not None:
        program.shardings[op.results[0].id] = sharding
    return op
