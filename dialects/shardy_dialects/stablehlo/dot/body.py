"""Scalar bodies of contractions."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_dialects.stablehlo.bodies import (
    element_type,
    is_boolean,
    is_complex,
    is_float,
    is_small_float,
    is_unsigned,
    kernel_type,
)
from shardy_dialects.stablehlo.dot import dot_general_maps, dot_maps
from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Op
from shardy_py.plugins import ElementBuilder, Scalar
from shardy_py.support.element_types import mlir_element_bits


def dot_general(b: ElementBuilder, op: Op) -> Scalar:
    """Sum products of elements along the contracting dimensions."""
    return _sum_of_products(b, op, dot_general_maps(op))


def dot(b: ElementBuilder, op: Op) -> Scalar:
    """Sum products of elements of vectors and matrices."""
    return _sum_of_products(b, op, dot_maps(op))


def _sum_of_products(b: ElementBuilder, op: Op, maps: Sequence[IndexingMap]) -> Scalar:
    """Sum products, in the type of the result; those of ``bf16`` and of 8 or 4 bits in ``f32``."""
    lhs, rhs = maps
    dtype = kernel_type(element_type(op.results[0]))
    wide = "f32" if dtype == "bf16" or is_small_float(dtype) else dtype
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
        places = (index[:split], index[split:])
        factors = [_factor(b, op, number, place, wide) for number, place in enumerate(places)]
        return [b.op(add, carried[0], b.op(multiply, *factors))]

    zero = b.constant(0, wide)
    (total,) = b.reduce(both, [zero], step)
    return total if wide == dtype else b.op("arith.truncf", total, dtype=dtype)


def _factor(b: ElementBuilder, op: Op, number: int, place: Sequence[Scalar], wide: str) -> Scalar:
    """Return an element of an operand in the type that products are summed in."""
    factor = b.operand(number, place)
    if factor.dtype == wide:
        return factor
    is_short = (mlir_element_bits(factor.dtype) or 0) <= (mlir_element_bits(wide) or 0)
    if is_float(op.results[0]):
        return b.op("arith.extf" if is_short else "arith.truncf", factor, dtype=wide)
    if not is_short:
        return b.op("arith.trunci", factor, dtype=wide)
    return b.op("arith.extui" if is_unsigned(op.operands[number]) else "arith.extsi", factor, dtype=wide)
