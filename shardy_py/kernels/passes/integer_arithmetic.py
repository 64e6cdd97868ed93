"""Integer arithmetic that XLA defines where processors do not: quotients, remainders and shifts, and powers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from xdsl.dialects import builtin, scf, vector
from xdsl.ir import Block, Operation, Region, SSAValue

from shardy_py.kernels.dialect.types import INDEX
from shardy_py.kernels.elemental.scalars import GUARD, exponent_bits
from shardy_py.kernels.passes.base import KernelContext, add_before, index_before, insert_before, replace, walk_ops
from shardy_py.kernels.passes.integer_types import index_width
from shardy_py.kernels.passes.op_maker import OpMaker
from shardy_py.values import frozen

_Compute = Callable[[Operation, SSAValue, SSAValue, int], SSAValue]
_DIVISIONS = {"arith.divsi": "arith.divui", "arith.remsi": "arith.remui"}
"""Ops that read a sign, and those of single bits, of which the quotients are the same."""


@frozen
class SafeIntegerArithmetic:
    """Let quotients, remainders and shifts that are marked with ``xla.guard_ub`` have a result everywhere.

    ``x / 0`` is -1, all bits of which are set, and ``x mod 0`` is ``x``; the least integer by -1 is itself, and leaves
    nothing. A shift by the width or more leaves no bit, or the sign.
    """

    name: str = "safe-integer-arithmetic"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        of_index = index_width(module)
        for op in walk_ops(module.body):
            if GUARD in op.attributes and op.name.startswith("arith.sh"):
                _replace(op, _safe_shift, of_index)
            elif GUARD in op.attributes and op.name in (*_DIVISIONS, *_DIVISIONS.values()):
                _replace(op, _safe_division, of_index)


def _replace(op: Operation, compute: _Compute, of_index: int) -> None:
    """Compute what an op on integers gives, of vectors element by element.

    Args:
        op: The op.
        compute: What adds the ops for two scalars.
        of_index: The bits of an index.
    """
    left, right = op.operands
    if not isinstance(left.type, builtin.VectorType):
        replace(op, [compute(op, left, right, of_index)])
        return
    result, element = left, left.type.element_type
    for place in product(*map(range, left.type.get_shape())):
        first, second = (insert_before(op, vector.ExtractOp(value, place, element)) for value in (left, right))
        result = insert_before(op, vector.InsertOp(compute(op, first, second, of_index), result, place))
    replace(op, [result])


def _width(value: SSAValue, of_index: int) -> int:
    return value.type.width.data if isinstance(value.type, builtin.IntegerType) else of_index


def _safe_division(op: Operation, left: SSAValue, right: SSAValue, of_index: int) -> SSAValue:
    maker, width = OpMaker(op), _width(left, of_index)
    name = _DIVISIONS.get(op.name, op.name) if width == 1 else op.name
    by_zero = unsafe = maker.compare("eq", right, 0)
    if name in _DIVISIONS:
        is_least = maker.compare("eq", left, -(1 << (width - 1)))
        overflows = maker.op("arith.andi", is_least, maker.compare("eq", right, -1))
        unsafe = maker.op("arith.ori", by_zero, overflows)
    # By 1 instead of -1 the least integer is itself and leaves nothing, too.
    result = maker.op(name, left, maker.select(unsafe, 1, right))
    return maker.select(by_zero, -1 if ".div" in name else left, result)


def _safe_shift(op: Operation, left: SSAValue, right: SSAValue, of_index: int) -> SSAValue:
    maker, width = OpMaker(op), _width(left, of_index)
    is_inside = maker.compare("ult", right, width)
    if op.name == "arith.shrsi":
        return maker.op(op.name, left, maker.select(is_inside, right, width - 1))
    return maker.select(is_inside, maker.op(op.name, left, maker.select(is_inside, right, 0)), 0)


@frozen
class ExpandIntegerPower:
    """Compute ``math.ipowi`` by squaring.

    As in XLA the last six bits of an exponent count, and a power with a negative exponent is what is left of the
    fraction: 1 or -1 where the base is, else 0.
    """

    name: str = "expand-integer-power"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        of_index = index_width(module)
        for op in walk_ops(module.body):
            if op.name == "math.ipowi":
                _replace(op, _power, of_index)


def _power(op: Operation, base: SSAValue, exponent: SSAValue, of_index: int) -> SSAValue:
    maker = OpMaker(op)
    low, high, step = (index_before(op, number) for number in (0, exponent_bits(_width(base, of_index)), 1))
    initial = [maker.number(1, base), base, exponent]
    block = Block(arg_types=[INDEX, *(value.type for value in initial)])
    _, total, factor, left = block.args
    marker = scf.YieldOp()
    block.add_op(marker)
    inner = OpMaker(marker)
    is_odd = inner.compare("ne", inner.integer("arith.andi", left, 1), 0)
    product_ = inner.select(is_odd, inner.op("arith.muli", total, factor), total)
    square, rest = inner.op("arith.muli", factor, factor), inner.integer("arith.shrui", left, 1)
    marker.detach()
    marker.erase()
    block.add_op(scf.YieldOp(product_, square, rest))
    loop = scf.ForOp(low, high, step, initial, Region(block))
    add_before(op, loop)
    is_even = maker.compare("eq", maker.integer("arith.andi", exponent, 1), 0)
    of_minus_one = maker.select(is_even, 1, maker.number(-1, base))
    of_one = maker.select(maker.compare("eq", base, 1), 1, maker.number(0, base))
    fraction = maker.select(maker.compare("eq", base, -1), of_minus_one, of_one)
    return maker.select(maker.compare("slt", exponent, 0), fraction, loop.results[0])
