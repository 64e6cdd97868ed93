"""Reductions, windows, dot products and maps."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.emission.types import (
    element_type,
    is_boolean,
    is_complex,
    is_float,
    kernel_type,
    operands,
)
from shardy_dialects.stablehlo.indexing import output_to_input
from shardy_py.ir.graph import Op
from shardy_py.plugins import ElementBuilder, Emission, Scalar


def reduce(b: ElementBuilder, op: Op) -> Sequence[Scalar]:
    """Combine the elements that the map runs over with the initial values."""
    count = len(op.results)
    maps = output_to_input(op)
    initial = [b.operand(count + number) for number in range(count)]

    def step(index: Sequence[Scalar], carried: Sequence[Scalar]) -> Sequence[Scalar]:
        return b.call(op, [*carried, *(b.operand(number, index) for number in range(count))])

    return b.reduce(maps[0], initial, step)


def dot(b: ElementBuilder, op: Op) -> Scalar:
    """Sum products; elements of 16 bits in ``f32``."""
    lhs, rhs = output_to_input(op)
    dtype = kernel_type(element_type(op.results[0]))
    wide = "f32" if dtype == "bf16" else dtype
    if is_complex(op.results[0]):
        multiply, add = "complex.mul", "complex.add"
    elif is_float(op.results[0]):
        multiply, add = "arith.mulf", "arith.addf"
    elif is_boolean(op.results[0]):
        multiply, add = "arith.andi", "arith.ori"
    else:
        multiply, add = "arith.muli", "arith.addi"
    both = type(lhs)((*lhs.results, *rhs.results), lhs.dims, lhs.ranges)

    def step(index: Sequence[Scalar], carried: Sequence[Scalar]) -> Sequence[Scalar]:
        split = len(lhs.results)
        factors = [b.operand(0, index[:split]), b.operand(1, index[split:])]
        if wide != dtype:
            factors = [b.op("arith.extf", factor, dtype=wide) for factor in factors]
        return [b.op(add, carried[0], b.op(multiply, *factors))]

    zero = b.constant(0, wide)
    (found,) = b.reduce(both, [zero], step)
    return found if wide == dtype else b.op("arith.truncf", found, dtype=dtype)


def map_(b: ElementBuilder, op: Op) -> Sequence[Scalar]:
    """Call the region with the elements of all operands."""
    return b.call(op, operands(b, op))


BODIES: dict[str, Emission] = {
    "dot": dot,
    "dot_general": dot,
    "map": map_,
    "reduce": reduce,
    "reduce_window": reduce,
}
