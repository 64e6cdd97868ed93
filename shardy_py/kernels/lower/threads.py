"""Barriers and exchanges between the lanes of a warp as LLVM for devices."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.dialect.gpu import BarrierOp, ShuffleOp, check_takes_from_below
from shardy_py.kernels.lower.writer import FunctionWriter, Handler
from shardy_py.kernels.passes.base import constant_value

_ALL_LANES, _LAST_LANE, _LANES = -1, 31, 32


def barrier(writer: FunctionWriter, op: BarrierOp) -> None:
    """Wait for the threads of the block."""
    writer.module.declare("llvm.nvvm.barrier.cta.sync.aligned.all", "void", ["i32"])
    writer.line("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)")


def shuffle(writer: FunctionWriter, op: ShuffleOp) -> None:
    """Return the value of a lane further down; the own one where there is none.

    Raises:
        UnsupportedError: lanes exchange in groups that are not whole warps, or take values of other lanes than those
            further down.
    """
    check_takes_from_below(op)
    if constant_value(op.width) != _LANES:
        message = "lanes exchange values in whole warps only"
        raise UnsupportedError(Diagnostic("llvm-shuffle-width", message, op=op.name))
    type_ = writer.type(op.result)
    name = f"llvm.nvvm.shfl.sync.down.{'f32' if type_ == 'float' else 'i32'}"
    operands = [("i32", str(_ALL_LANES)), (type_, writer.get(op.value)), ("i32", writer.get(op.offset))]
    operands.append(("i32", str(_LAST_LANE)))
    if not op.valid.uses.get_length():
        writer.bind(op.result, writer.call(name, type_, operands))
        return
    struct = f"{{ {type_}, i1 }}"
    both = writer.call(name + "p", struct, operands)
    for number, result in enumerate(op.results):
        writer.let(result, f"extractvalue {struct} {both}, {number}")


HANDLERS: Mapping[str, Handler] = MappingProxyType({"gpu.barrier": barrier, "gpu.shuffle": shuffle})
