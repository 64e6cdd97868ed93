"""Faults of a module: those that the interpreter sees while it runs, and start values that are not neutral."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

import numpy as np
from attrs import evolve
from xdsl.dialects import arith, builtin, func, scf
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from shardy_py.errors import Diagnostic, ShardyError, UnsupportedError
from shardy_py.kernels.dialect.gpu import ShuffleOp
from shardy_py.kernels.dialect.memory_ops import PredicatedExtractOp, ShuffleReduceOp
from shardy_py.kernels.dialect.ops import LoopOp, PureCallOp
from shardy_py.kernels.dialect.tile_ops import ReduceOp, ReindexOp
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.locations import file_line
from shardy_py.kernels.opt.modules import KernelModule
from shardy_py.kernels.opt.run_module import ModuleArgument, run_module
from shardy_py.kernels.run.frame import LoadedKernel
from shardy_py.kernels.run.indices import number
from shardy_py.kernels.run.kernel import loaded_kernel, run_function
from shardy_py.kernels.run.threads import WARP
from shardy_py.kernels.run.values import array_dtype

_SAMPLES = (3, 1, 0, -2, 7)
_MOST_STARTS = 16


def sanitize(
    kernel: KernelModule,
    launch: Launch,
    arguments: Sequence[ModuleArgument],
    arrays: Sequence[Any],
    *,
    stage: str = "",
    warp: int = WARP,
) -> list[Diagnostic]:
    """Return the faults of a module, one per op and kind, each with the line of its op, or its file where MLIR read it.

    Races, reads of undefined memory, accesses out of bounds or off their alignment, and divisions by zero do not end
    the run, so that others are found behind them; a barrier or an exchange that not all threads reach does.

    Args:
        kernel: The module.
        launch: The grid.
        arguments: Its arguments.
        arrays: An array for each.
        stage: The name of the stage, for reports.
        warp: The threads that run in lockstep.

    Raises:
        UnsupportedError: an op or type that the interpreter does not know.
    """
    recorded: dict[tuple[Operation, str], Diagnostic] = {}
    ending: list[Diagnostic] = []
    try:
        run_module(kernel, launch, arguments, arrays, stage=stage, warp=warp, findings=recorded)
    except UnsupportedError:
        raise
    except ShardyError as error:
        ending = list(error.diagnostics)
    # The stage is the location of an op that has no line.
    faults = [
        evolve(item, location=kernel.name) if item.location == stage else item for item in (*recorded.values(), *ending)
    ]
    return [*faults, *wrong_start_values(kernel)]


def wrong_start_values(kernel: KernelModule) -> list[Diagnostic]:
    """Return the values that lanes without elements contribute to a reduction, and that change its result.

    A reduction over lanes, or over a tensor with a border, is followed back to the constants that its elements may be
    where there are none: start values of loops, and what stands for elements that are not read.

    Args:
        kernel: The module.
    """
    faults = []
    loaded = loaded_kernel(kernel.module, "")
    for op, combiner, values in _reductions(kernel):
        starts = [list(dict.fromkeys(_starts(value)))[:_MOST_STARTS] for value in values]
        for choice in islice(product(*starts), _MOST_STARTS):
            problem = _change(loaded, combiner, [number(constant) for constant in choice], values)
            if problem:
                text = ", ".join(_text(constant) for constant in choice)
                message = f"{text} is not neutral in @{combiner}: {problem}"
                hint = "start with the element that the function leaves others as they are with, such as 0 of a sum"
                faults.append(
                    Diagnostic("wrong-neutral-value", message, file_line(op) or kernel.name, op.name, hint=hint)
                )
    return faults


def _text(constant: Any) -> str:
    return str(constant.value.data) if isinstance(constant, builtin.IntegerAttr | builtin.FloatAttr) else str(constant)


def _reductions(kernel: KernelModule) -> Iterator[tuple[Operation, str, Sequence[SSAValue]]]:
    """Yield the ops that combine values of lanes, or elements of a tensor with a border, with what they combine."""
    for op in kernel.module.walk():
        if isinstance(op, ShuffleReduceOp):
            yield op, op.combiner.string_value(), op.arguments
        elif isinstance(op, ReduceOp):
            borders = [_border(value) for value in op.inputs]
            if all(border is not None for border in borders):
                yield op, op.combiner.string_value(), [border for border in borders if border is not None]
        elif isinstance(op, PureCallOp | func.CallOp):
            count = len(op.operands) // 2
            others = [value.owner for value in op.operands[count:]]
            if count and all(isinstance(owner, ShuffleOp) for owner in others) and len(op.operands) == 2 * count:
                yield op, op.callee.string_value(), op.operands[:count]


def _border(value: SSAValue) -> SSAValue | None:
    return value.owner.default if isinstance(value.owner, ReindexOp) else None


def _starts(value: SSAValue, depth: int = 0) -> Iterator[Any]:
    """Yield the constants that a value is where no element was combined."""
    owner = value.owner
    if depth > _MOST_STARTS:
        return
    if isinstance(owner, arith.ConstantOp) and not isinstance(value.type, builtin.TensorType | builtin.VectorType):
        yield owner.value
    elif isinstance(owner, LoopOp | scf.ForOp) and isinstance(value, OpResult):
        inits = owner.inits if isinstance(owner, LoopOp) else owner.iter_args
        yield from _starts(inits[value.index], depth + 1)
    elif isinstance(owner, scf.IfOp) and isinstance(value, OpResult):
        for region in owner.regions:
            last = region.block.last_op if region.blocks else None
            if last is not None:
                yield from _starts(last.operands[value.index], depth + 1)
    elif isinstance(owner, PredicatedExtractOp):
        yield from _starts(owner.fallback, depth + 1)
    elif isinstance(owner, arith.SelectOp):
        yield from _starts(owner.lhs, depth + 1)
        yield from _starts(owner.rhs, depth + 1)
    elif isinstance(value, BlockArgument) and isinstance(value.owner.parent_op(), LoopOp | scf.ForOp):
        loop = value.owner.parent_op()
        assert isinstance(loop, LoopOp | scf.ForOp)
        inits = loop.inits if isinstance(loop, LoopOp) else loop.iter_args
        place = value.index - (len(value.owner.args) - len(inits))
        if place >= 0:
            yield from _starts(inits[place], depth + 1)


def _change(loaded: LoadedKernel, combiner: str, starts: Sequence[Any], values: Sequence[SSAValue]) -> str:
    """Return how a function changes elements that it combines with start values; "" where it leaves them."""
    elements = []
    for value in values:
        dtype = np.dtype(array_dtype(value.type))
        samples = np.array(_SAMPLES)
        elements.append(samples > 0 if dtype.kind == "b" else samples.astype(dtype))
    count = len(_SAMPLES)
    constants: list[Any] = [np.broadcast_to(start, (count,)) for start in starts]
    for operands in ([*constants, *elements], [*elements, *constants]):
        try:
            results: list[Any] = run_function(loaded, combiner, operands, count)
        except ShardyError:
            return ""
        for element, result in zip(elements, results, strict=True):
            wrong = np.broadcast_to(result, (count,)) != element
            if wrong.any():
                place = int(np.argmax(wrong))
                return f"with {element[place]} it gives {np.broadcast_to(result, (count,))[place]}"
    return ""
