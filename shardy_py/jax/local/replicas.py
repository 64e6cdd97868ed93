"""Local programs in the form in which each device is a replica: then no partitioner of XLA runs."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from shardy_py.frontends.mlir import import_module, write_back
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Program
from shardy_py.jax.unsharded import without_shardings
from shardy_py.transforms.exported_ops import count_from_the_front

_CHANNELS = ("channel_handle", "use_global_device_ids")
"""Attributes of collectives between partitions, which those between replicas must not have."""


def as_replicas(module: Any) -> bytes:
    """Return the bytecode of a local program for replicas, without shardings.

    The program itself has one replica, whose number is 0.

    Args:
        module: The module; it stays as it is.
    """
    program = import_module(without_shardings(module))
    count_from_the_front(program)
    for op in list(program.walk()):
        for name in _CHANNELS:
            if name in op.attributes:
                del op.attributes[name]
        if op.name == "stablehlo.replica_id":
            _replace(program, op, "stablehlo.constant", {"value": RawAttribute("dense<0> : tensor<ui32>")})
        if op.name == "stablehlo.partition_id":
            _replace(program, op, "stablehlo.replica_id", {})
        if op.name == "stablehlo.fft":
            keep_layout(program, op)
    bytecode = BytesIO()
    write_back(program).operation.write_bytecode(bytecode)
    return bytecode.getvalue()


def _replace(program: Program, op: Op, name: str, attributes: dict[str, Any]) -> None:
    """Put an op without operands in the place of another one."""
    new_op = Op(program, name, (), [op.result.type], attributes)
    if op.parent is not None:
        op.parent.insert_before(op, new_op)
    op.result.replace_all_uses_with(new_op.result)
    op.erase()


def keep_layout(program: Program, op: Op) -> None:
    """Keep the result of an op row-major.

    XLA:CPU transforms nothing else, but gives a Fourier transform the layout of a collective behind it.
    """
    result = op.result
    rank = len(result.shape)
    layouts = RawAttribute(f"[dense<{list(reversed(range(rank)))}> : tensor<{rank}xindex>]")
    attributes = {"call_target_name": "LayoutConstraint", "operand_layouts": layouts, "result_layouts": layouts}
    constraint = Op(program, "stablehlo.custom_call", [result], [result.type], attributes)
    result.replace_all_uses_with(constraint.result, except_op=constraint)
    if op.parent is not None:
        op.parent.insert_after(op, constraint)
