"""Clamp the starts of slices of sharded tensors: XLA's partitioner gives wrong numbers where they are outside."""

from __future__ import annotations

import re
from typing import ClassVar

from shardy_py.ir.graph.attributes import DenseElements, RawAttribute
from shardy_py.ir.graph.op_names import CONSTANT
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import frozen

_SLICE = "stablehlo.dynamic_slice"
_UPDATE = "stablehlo.dynamic_update_slice"
_CONSTANT = "stablehlo.constant"
_INTEGER = re.compile(r"(u?)i(\d+)")


@frozen
class ClampStartsPass:
    """Clamp the starts of ``stablehlo.dynamic_slice`` and ``dynamic_update_slice`` along sharded dimensions.

    The ops do so themselves, but parts of them on devices do not, as in XLA's spmd_partitioner.cc::HandleDynamicSlice.

    Args:
        leave_open: Whether XLA may shard values without a sharding.
    """

    name: ClassVar[str] = "xla-clamp-starts"

    leave_open: bool = False

    def run(self, program: Program, context: PassContext) -> None:
        """Look at the ops of all functions."""
        for op in ops_named(program, _SLICE, _UPDATE):
            window = op.results[0] if op.name == _SLICE else op.operands[1]
            first = len(op.operands) - len(window.shape)
            for dim, (whole, size) in enumerate(zip(op.operands[0].shape, window.shape, strict=True)):
                if whole is not None and size is not None and self._is_sharded(program, op, window, dim):
                    _clamp(program, op, first + dim, whole - size)

    def _is_sharded(self, program: Program, op: Op, window: Value, dim: int) -> bool:
        shardings = [program.shardings.get(value.id) for value in (op.operands[0], op.results[0], window)]
        is_decided = any(sharding is not None and sharding.dim_shardings[dim].axes for sharding in shardings)
        return is_decided or (self.leave_open and None in shardings)


def _clamp(program: Program, op: Op, number: int, last: int) -> None:
    """Clamp a start, unless it is a constant that is inside."""
    start = op.operands[number]
    known = _known(start)
    integer = _INTEGER.fullmatch(start.type.element_type) if isinstance(start.type, TensorType) else None
    if integer is None or (known is not None and 0 <= known <= last):
        return
    largest = (1 << (int(integer[2]) - (not integer[1]))) - 1
    bounds = [_constant(program, start, value) for value in (0, min(last, largest))]
    made = Op(program, "stablehlo.clamp", (bounds[0].results[0], start, bounds[1].results[0]), (start.type,))
    for new in (*bounds, made):
        op.parent.insert_before(op, new)  # type: ignore[union-attr]
    op.set_operand(number, made.results[0])


def _known(start: Value) -> int | None:
    """Return the number that a start is, if that is known."""
    op = start.defining_op
    value = op.attributes.get("value") if op is not None and op.name in (_CONSTANT, CONSTANT) else None
    return int(value.values[0]) if isinstance(value, DenseElements) and len(value.values) == 1 else None


def _constant(program: Program, like: Value, value: int) -> Op:
    return Op(program, _CONSTANT, (), (like.type,), {"value": RawAttribute(f"dense<{value}> : {like.type}")})
