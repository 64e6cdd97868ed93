"""Casts of scalar bodies: ``f32(x)``, ``ui8(x)``."""

from __future__ import annotations

import ast

from shardy_py.ir.interfaces.emission import ElementBuilder
from shardy_py.plugins.bodies.arithmetic import compare
from shardy_py.plugins.bodies.terms import BOOLEAN, BYTES, INDEX, Term, mistake, scalar_dtype, with_type


def cast(b: ElementBuilder, term: Term, dtype: str) -> Term:
    """Return a term as one of another type.

    Raises:
        PluginError: its type cannot become the other one.
    """
    if term.is_number or term.dtype == dtype:
        return with_type(b, term, dtype)
    if term.is_complex:
        raise mistake(f"{term.dtype} is no {dtype}", "take real(x) or imag(x)")
    target = Term(dtype, term.value)
    if dtype == BOOLEAN:
        return compare(b, ast.NotEq(), term, Term(number=0))
    if term.dtype == INDEX:
        return _of_index(b, term, target)
    if target.is_float:
        return _to_float(b, term, target)
    wanted = scalar_dtype(dtype)
    if term.is_float:
        name = "arith.fptoui" if target.is_unsigned else "arith.fptosi"
        return Term(dtype, b.op(name, term.scalar, dtype=wanted))
    bits = 1 if term.is_boolean else term.bits
    if bits == target.bits:
        return Term(dtype, term.value)
    is_unsigned = term.is_unsigned or term.is_boolean
    name = "arith.trunci" if bits > target.bits else "arith.extui" if is_unsigned else "arith.extsi"
    return Term(dtype, b.op(name, term.scalar, dtype=wanted))


def _of_index(b: ElementBuilder, term: Term, target: Term) -> Term:
    if target.is_float:
        wide = b.op("arith.index_castui", term.scalar, dtype="i64")
        return Term(target.dtype, b.op("arith.sitofp", wide, dtype=target.dtype))
    return Term(target.dtype, b.op("arith.index_castui", term.scalar, dtype=scalar_dtype(target.dtype)))


def _to_float(b: ElementBuilder, term: Term, target: Term) -> Term:
    if not term.is_float:
        name = "arith.uitofp" if term.is_unsigned or term.is_boolean else "arith.sitofp"
        return Term(target.dtype, b.op(name, term.scalar, dtype=target.dtype))
    types = (term.dtype, target.dtype)
    if (term.is_short and target.is_short) or ("f64" in types and any(dtype in BYTES for dtype in types)):
        return _to_float(b, cast(b, term, "f32"), target)
    name = "arith.extf" if target.bits > term.bits else "arith.truncf"
    return Term(target.dtype, b.op(name, term.scalar, dtype=target.dtype))
