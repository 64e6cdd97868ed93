"""Branches, calls, ids, barriers and exchanges between lanes as LLVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects import cf, func
from xdsl.ir import Block, Operation, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.op_names import CALL, RETURN
from shardy_py.kernels.dialect.gpu import BarrierOp, BlockIdOp, ShuffleOp, ThreadIdOp, check_takes_from_below
from shardy_py.kernels.elemental.functions import RANGE
from shardy_py.kernels.lower.writer import FunctionWriter, Handler
from shardy_py.kernels.passes.base import constant_value
from shardy_py.kernels.passes.index_ranges import interval_of

Passed = tuple[Block, Sequence[SSAValue]]
"""A block that is branched to, and what it gets."""


def successors(op: Operation) -> Iterator[Passed]:
    """Yield the blocks that a terminator leads to, with what it passes.

    Raises:
        UnsupportedError: it is not a terminator of ``cf`` or ``func``.
    """
    if isinstance(op, cf.BranchOp):
        yield op.successor, op.arguments
    elif isinstance(op, cf.ConditionalBranchOp):
        yield op.then_block, op.then_arguments
        yield op.else_block, op.else_arguments
    elif isinstance(op, cf.SwitchOp):
        yield op.default_block, op.default_operands
        yield from zip(op.case_blocks, op.case_operand, strict=True)
    elif not isinstance(op, func.ReturnOp):
        raise UnsupportedError(Diagnostic("llvm-op", "no block of LLVM ends like this", op=op.name))


def branch(writer: FunctionWriter, op: cf.BranchOp) -> None:
    """Go on in another block."""
    writer.line(f"br label %{writer.label(op.successor)}")


def conditional_branch(writer: FunctionWriter, op: cf.ConditionalBranchOp) -> None:
    """Go on in one of two blocks."""
    labels = [f"label %{writer.label(block)}" for block in (op.then_block, op.else_block)]
    writer.line(f"br i1 {writer.get(op.cond)}, {labels[0]}, {labels[1]}")


def switch(writer: FunctionWriter, op: cf.SwitchOp) -> None:
    """Go on in one of several blocks."""
    values = op.case_values.get_values() if op.case_values is not None else ()
    type_ = writer.type(op.flag)
    cases = " ".join(
        f"{type_} {value}, label %{writer.label(block)}" for value, block in zip(values, op.case_blocks, strict=True)
    )
    writer.line(f"switch {writer.typed(op.flag)}, label %{writer.label(op.default_block)} [{cases}]")


def return_(writer: FunctionWriter, op: func.ReturnOp) -> None:
    """Return scalars: none, one, or several as a struct."""
    values = list(op.arguments)
    if not values:
        writer.line("ret void")
    elif len(values) == 1:
        writer.line(f"ret {writer.typed(values[0])}")
    else:
        type_, struct = result_type(writer, [value.type for value in values]), "poison"
        for number, value in enumerate(values):
            struct = writer.new(f"insertvalue {type_} {struct}, {writer.typed(value)}, {number}")
        writer.line(f"ret {type_} {struct}")


def result_type(writer: FunctionWriter, types: Sequence[object]) -> str:
    """Return the type of what a function returns."""
    texts = [writer.type(type_) for type_ in types]  # type: ignore[arg-type]
    if len(texts) > 1:
        return "{" + ", ".join(texts) + "}"
    return texts[0] if texts else "void"


def call(writer: FunctionWriter, op: func.CallOp) -> None:
    """Call a function of the module."""
    arguments = ", ".join(writer.typed(value) for value in op.arguments)
    type_ = result_type(writer, list(op.results.types))
    text = f"call {type_} @{op.callee.string_value()}({arguments})"
    if len(op.results) == 1:
        writer.let(op.results[0], text)
        return
    if not op.results:
        writer.line(text)
        return
    struct = writer.new(text)
    for number, result in enumerate(op.results):
        writer.let(result, f"extractvalue {type_} {struct}, {number}")


def _id(register: str, argument: str) -> Handler:
    def write(writer: FunctionWriter, op: ThreadIdOp | BlockIdOp) -> None:
        dimension = op.dimension.data.value
        text = f"%{argument}.{dimension}"
        if writer.target.is_device:
            interval = interval_of(op.attributes.get(RANGE))
            bounds = f"range(i32 0, {interval.upper + 1}) " if interval is not None else ""
            text = writer.call(f"llvm.nvvm.read.ptx.sreg.{register}.{dimension}", "i32", [], bounds)
        if writer.module.index_width == 64:
            text = writer.new(f"zext nneg i32 {text} to i64")
        writer.bind(op.output, text)

    return write


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


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "cf.br": branch,
        "cf.cond_br": conditional_branch,
        "cf.switch": switch,
        CALL: call,
        RETURN: return_,
        "gpu.block_id": _id("ctaid", "block"),
        "gpu.thread_id": _id("tid", "thread"),
        "gpu.barrier": barrier,
        "gpu.shuffle": shuffle,
    }
)
