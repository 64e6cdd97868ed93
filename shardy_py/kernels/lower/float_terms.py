"""Sums, products and polynomials of floats as LLVM's text, of which functions on the host are made."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import builtin

from shardy_py.kernels.lower.writer import FunctionWriter

_TYPES = {"float": builtin.f32, "double": builtin.f64}
_SUFFIXES = {"float": "f32", "double": "f64"}


def polynomial(writer: FunctionWriter, coefficients: Sequence[float], x: str, type_: str = "float") -> str:
    """Return a polynomial by Horner's rule, from the coefficient of the highest power on."""
    result = number(writer, coefficients[0], type_)
    for coefficient in coefficients[1:]:
        result = product_and_total(writer, result, x, number(writer, coefficient, type_), type_)
    return result


def number(writer: FunctionWriter, value: float, type_: str = "float") -> str:
    """Return a constant."""
    return writer.number(value, _TYPES[type_])


def product_and_total(writer: FunctionWriter, left: str, right: str, other: str, type_: str = "float") -> str:
    """Return the sum of a product and another number, rounded once where the processor can."""
    name = f"llvm.fmuladd.{_SUFFIXES[type_]}"
    return writer.call(name, type_, [(type_, value) for value in (left, right, other)])


def total(writer: FunctionWriter, left: str, right: str, type_: str = "float") -> str:
    """Return a sum."""
    return writer.new(f"fadd {type_} {left}, {right}")


def product(writer: FunctionWriter, left: str, right: str, type_: str = "float") -> str:
    """Return a product."""
    return writer.new(f"fmul {type_} {left}, {right}")


def or_zero(writer: FunctionWriter, x: str, result: str, type_: str = "float") -> str:
    """Return a result, or the number that it follows from where that is zero, with its sign."""
    is_zero = writer.new(f"fcmp oeq {type_} {x}, {number(writer, 0.0, type_)}")
    return writer.new(f"select i1 {is_zero}, {type_} {x}, {type_} {result}")
