"""Complex numbers by their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, builtin
from xdsl.dialects import complex as complex_dialect
from xdsl.ir import Operation, SSAValue

from shardy_py.kernels.passes import complex_functions
from shardy_py.kernels.passes.base import KernelContext, erase_dead_ops, insert_before, replace, walk_ops
from shardy_py.kernels.passes.scalar_terms import ScalarTerm
from shardy_py.values import frozen

_Pair = tuple[ScalarTerm, ScalarTerm]
_PARTS = ("complex.create", "complex.re", "complex.im", "complex.constant")


@frozen
class ComplexToStandard:
    """Compute with the parts of complex numbers; only taking apart and putting together is left of ``complex``."""

    name: str = "complex-to-standard"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for op in walk_ops(module.body):
            if op.name.startswith("complex.") and op.name not in _PARTS:
                _lower(op)
        for op in walk_ops(module.body):
            if isinstance(op, complex_dialect.ReOp | complex_dialect.ImOp):
                _fold_part(op)
        erase_dead_ops(module.body)


def _lower(op: Operation) -> None:
    pairs = [_parts(value, op) for value in op.operands]
    name = op.name.removeprefix("complex.")
    if name in ("eq", "neq"):
        replace(op, [_equality(op, pairs)])
        return
    compute: Callable[..., Any] = complex_functions.FUNCTIONS[name]
    result = compute(*pairs)
    if isinstance(result, ScalarTerm):
        replace(op, [result.value])
        return
    real, imaginary = result
    type_: Any = op.results[0].type
    replace(op, [insert_before(op, complex_dialect.CreateOp(real.value, imaginary.value, type_))])


def _parts(value: SSAValue, before: Operation) -> _Pair:
    if isinstance(value.owner, complex_dialect.CreateOp):
        return ScalarTerm(value.owner.real, before), ScalarTerm(value.owner.imaginary, before)
    real, imaginary = complex_dialect.ReOp(value), complex_dialect.ImOp(value)
    return ScalarTerm(insert_before(before, real), before), ScalarTerm(insert_before(before, imaginary), before)


def _equality(op: Operation, pairs: list[_Pair]) -> SSAValue:
    (a, b), (c, d) = pairs
    predicate, join = ("oeq", arith.AndIOp) if op.name == "complex.eq" else ("une", arith.OrIOp)
    return insert_before(op, join(a.compare(predicate, c), b.compare(predicate, d)))


def _fold_part(op: complex_dialect.ReOp | complex_dialect.ImOp) -> None:
    owner = op.operands[0].owner
    is_real = isinstance(op, complex_dialect.ReOp)
    if isinstance(owner, complex_dialect.CreateOp):
        replace(op, [owner.real if is_real else owner.imaginary])
    elif isinstance(owner, complex_dialect.ConstantOp):
        part: Any = owner.value.data[0 if is_real else 1]
        replace(op, [insert_before(op, arith.ConstantOp(builtin.FloatAttr(part.value.data, part.type)))])
