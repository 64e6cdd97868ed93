"""Unrolling of short loops."""

from __future__ import annotations

from xdsl.dialects import arith, builtin, func, scf, vector
from xdsl.dialects import math as math_dialect
from xdsl.ir import Block, Operation, Region, SSAValue

from shardy_py.kernels.dialect.ops import ApplyIndexingOp
from shardy_py.kernels.dialect.syntax import INDEX
from shardy_py.kernels.passes.apply_indexing import fold_apply
from shardy_py.kernels.passes.base import (
    KernelContext,
    constant_value,
    erase_dead_ops,
    index_before,
    inline_block,
    insert_before,
    replace,
    walk_ops,
)
from shardy_py.values import frozen

_CHEAP_MATH = (
    *(math_dialect.AbsFOp, math_dialect.CeilOp, math_dialect.CopySignOp, math_dialect.FloorOp),
    *(math_dialect.FmaOp, math_dialect.RoundOp, math_dialect.RsqrtOp, math_dialect.SqrtOp, math_dialect.TruncOp),
)
_LARGE_MATH = frozenset(
    f"math.{name}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "sin", "tan", "powf")
)


@frozen
class UnrollLoops:
    """Repeat the body of short loops: up to four times as a whole, longer loops as far as the code stays small.

    Args:
        max_ops: The number of ops up to which the body of a longer loop is repeated.
        full: The number of trips up to which a loop goes away.
    """

    max_ops: int = 400
    full: int = 4
    name: str = "optimize-loops"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        loops = [op for op in walk_ops(module.body) if isinstance(op, scf.ForOp)]
        for loop in reversed(loops):
            factor = self._factor(loop)
            if factor > 1:
                unroll(loop, factor)
        for op in walk_ops(module.body):
            if isinstance(op, ApplyIndexingOp):
                fold_apply(op)
        erase_dead_ops(module.body)

    def _factor(self, loop: scf.ForOp) -> int:
        trips = constant_value(loop.ub)
        if constant_value(loop.lb) != 0 or constant_value(loop.step) != 1 or trips is None or trips < 1:
            return 1
        if trips <= self.full and not any(isinstance(op, scf.ForOp) for op in loop.body.block.walk()):
            return trips
        size = _size(loop)
        if size is None:
            return 1
        most = self.max_ops // max(1, size)
        return max((factor for factor in range(1, min(most, trips) + 1) if trips % factor == 0), default=1)


def _size(loop: scf.ForOp) -> int | None:
    """Return the size of a loop's body in ops, float math counted twenty times; None where it is not repeated."""
    total = 0
    for op in loop.body.block.walk():
        if isinstance(op, scf.ForOp | func.CallOp):
            return None
        if op.name in _LARGE_MATH and op.name not in ("math.cos", "math.sin", "math.powf", "math.tan", "math.atan2"):
            return None
        cost = 20 if op.name.startswith("math.") and not isinstance(op, _CHEAP_MATH) else 1
        width = 1
        for result in op.results:
            if isinstance(result.type, builtin.VectorType) and not isinstance(op, vector.InsertOp):
                width = max(width, result.type.get_shape()[-1])
        total += cost * width
    return total


def unroll(loop: scf.ForOp, factor: int) -> None:
    """Repeat the body of a loop that begins at zero and takes single steps."""
    trips = constant_value(loop.ub)
    assert trips is not None
    if factor == trips:
        replace(loop, _repeated(loop, loop, list(loop.iter_args), 0, factor, None))
        return
    block = Block(arg_types=[INDEX, *(value.type for value in loop.iter_args)])
    first, *carried = block.args
    marker = scf.YieldOp()
    block.add_op(marker)
    found = _repeated(loop, marker, list(carried), 0, factor, first)
    marker.detach()
    marker.erase()
    block.add_op(scf.YieldOp(*found))
    step = index_before(loop, factor)
    made = scf.ForOp(loop.lb, loop.ub, step, list(loop.iter_args), Region(block))
    parent = loop.parent
    assert parent is not None
    parent.insert_op_before(made, loop)
    replace(loop, list(made.results))


def _repeated(
    loop: scf.ForOp, before: Operation, carried: list[SSAValue], start: int, count: int, base: SSAValue | None
) -> list[SSAValue]:
    """Put copies of a loop's body before an op; return what the last one gives."""
    for number in range(start, start + count):
        index = index_before(before, number)
        if base is not None:
            index = insert_before(before, arith.AddiOp(base, index))
        body = loop.body.clone()
        carried = inline_block(body.block, before, [index, *carried])
    return carried
