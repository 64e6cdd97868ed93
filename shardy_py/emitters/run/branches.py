"""Terminators that branch to other blocks: ``cf.br``, ``cf.cond_br``, ``cf.switch``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from xdsl.dialects import cf
from xdsl.ir import Block, Operation

from shardy_py.emitters.run.frame import Frame
from shardy_py.emitters.run.memory import Value
from shardy_py.errors import Diagnostic, UnsupportedError


def branch_targets(frame: Frame, op: Operation) -> Iterator[tuple[Block, Any, list[Value]]]:
    """Yield the blocks that threads go to, which threads, and what they pass.

    Raises:
        UnsupportedError: the terminator is unknown.
    """
    if isinstance(op, cf.BranchOp):
        yield op.successor, frame.mask, frame.gets(op.arguments)
    elif isinstance(op, cf.ConditionalBranchOp):
        condition = frame.get(op.cond)
        yield op.then_block, frame.active(condition), frame.gets(op.then_arguments)
        yield op.else_block, frame.active(np.logical_not(condition)), frame.gets(op.else_arguments)
    elif isinstance(op, cf.SwitchOp):
        flag, rest = frame.get(op.flag), np.True_
        cases = op.case_values.get_values() if op.case_values is not None else ()
        for value, block, operands in zip(cases, op.case_blocks, op.case_operand, strict=True):
            yield block, frame.active(flag == value), frame.gets(operands)
            rest = rest & (flag != value)
        yield op.default_block, frame.active(rest), frame.gets(op.default_operands)
    else:
        message = "the interpreter of kernels does not know the terminator"
        raise UnsupportedError(Diagnostic("run-unknown-op", message, frame.kernel.stage, op.name))
