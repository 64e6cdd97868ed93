"""Strips of threads on the host: the loop over threads along x is cut where quotients of their number change.

Inside of a strip a quotient is the same for all threads and a remainder grows with them, so that LLVM sees that
neighbours read neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Operation

from shardy_py.kernels.dialect.gpu import ThreadIdOp
from shardy_py.kernels.lower.writer import FunctionWriter
from shardy_py.kernels.passes.base import constant_value

STRIP, LANE = "%strip", "%lane"
_LEAST = 8


def strip_width(ops: Iterable[Operation], threads: int, *, within: int = 0) -> int:
    """Return the number of threads of a strip; a divisor that leaves strips shorter than a vector is left out.

    Args:
        ops: What threads run.
        threads: The threads along x.
        within: A number that strips are parts of, if there is one.
    """
    width = threads
    divisors = {found for op in ops if (found := _divisor(op)) is not None}
    for divisor in (*([within] if within else []), *sorted(divisors, reverse=True)):
        shared = gcd(width, divisor)
        width = shared if shared >= _LEAST else width
    return width


def write_in_strip(op: Operation, writer: FunctionWriter, width: int) -> bool:
    """Write a quotient or a remainder of the thread's number by the strip's number and the place in it.

    Args:
        op: An op.
        writer: The function that it is part of.
        width: The threads of a strip.

    Returns:
        Whether the op is such a quotient or remainder.
    """
    divisor = _divisor(op)
    if divisor is None or divisor % width:
        return False
    strips = divisor // width
    if isinstance(op, arith.DivUIOp):
        writer.let(op.result, f"udiv i32 {STRIP}, {strips}")
        return True
    before = writer.new(f"urem i32 {STRIP}, {strips}")
    writer.let(op.results[0], f"add nuw nsw i32 {writer.new(f'mul nuw nsw i32 {before}, {width}')}, {LANE}")
    return True


def _divisor(op: Operation) -> int | None:
    """Return what an op divides the thread's number along x by."""
    if not isinstance(op, arith.DivUIOp | arith.RemUIOp):
        return None
    found = op.lhs.owner
    is_thread = isinstance(found, ThreadIdOp) and found.dimension.data.value == "x"
    return constant_value(op.rhs) or None if is_thread else None
