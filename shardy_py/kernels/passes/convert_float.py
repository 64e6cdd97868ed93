"""Functions of floats of 16 bits, and conversions from and to floats of 8 bits."""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects import arith, builtin
from xdsl.dialects import math as math_dialect
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Operation, SSAValue

from shardy_py.kernels.elemental.scalars import make_op
from shardy_py.kernels.passes.base import KernelContext, insert_before, replace, walk_ops
from shardy_py.kernels.passes.scalar_terms import ScalarTerm
from shardy_py.kernels.passes.small_floats import convert_small_float
from shardy_py.values import frozen

_SHORT = (builtin.BFloat16Type, builtin.Float16Type)
# What only touches the sign needs no wider type.
_OF_BITS = ("math.absf", "math.copysign")
APPROXIMATE = arith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])


@frozen
class ConvertFloat:
    """Compute functions of floats of 16 bits in ``f32``; powers and logarithms of base two approximate there.

    Floats of 8 bits are converted by integers.
    """

    name: str = "convert-float"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in walk_ops(module.body):
            if isinstance(op, arith.ExtFOp | arith.TruncFOp) and convert_small_float(op):
                continue
            is_function = op.name.startswith("math.") and op.name not in _OF_BITS
            if (is_function or op.name == "arith.remf") and isinstance(op.results[0].type, _SHORT):
                _widen(op)


def _widen(op: Operation) -> None:
    values = [ScalarTerm(insert_before(op, arith.ExtFOp(value, builtin.f32)), op) for value in op.operands]
    first = values[0]
    if isinstance(op, math_dialect.ExpOp):
        found = _approximate(op, "math.exp2", (first * math.log2(math.e)).value)
    elif isinstance(op, math_dialect.LogOp):
        found = (ScalarTerm(_approximate(op, "math.log2", first.value), op) * math.log(2)).value
    else:
        wide = make_op(op.name, [value.value for value in values], builtin.f32, {})
        found = insert_before(op, wide)
    type_: Any = op.results[0].type
    replace(op, [insert_before(op, arith.TruncFOp(found, type_))])


def _approximate(op: Operation, name: str, value: SSAValue) -> SSAValue:
    made = make_op(name, [value], builtin.f32, {})
    made.properties["fastmath"] = APPROXIMATE
    return insert_before(op, made)
