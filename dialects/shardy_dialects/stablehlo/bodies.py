"""Element types of StableHLO and of kernels, and scalar bodies that several families share."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.ir.graph.program import Op, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.plugins import ElementBuilder, Scalar

HALVES = frozenset(("bf16", "f16"))


def element_type(value: Value) -> str:
    """Return the element type of a value, with its sign: ``ui8``, ``i1``, ``f32``."""
    return value.type.element_type if isinstance(value.type, TensorType) else ""


def kernel_type(element_type: str) -> str:
    """Return the type that elements have in a kernel: booleans are bytes, integers have no sign."""
    if element_type == "i1":
        return "i8"
    return element_type[1:] if element_type.startswith(("ui", "si")) else element_type


def is_boolean(value: Value) -> bool:
    """Return whether elements are booleans."""
    return element_type(value) == "i1"


def is_float(value: Value) -> bool:
    """Return whether elements are floating-point numbers."""
    return element_type(value).startswith(("f", "bf", "tf"))


def is_small_float(dtype: str) -> bool:
    """Return whether a type of elements is one of floats of 8 or 4 bits.

    >>> [is_small_float(dtype) for dtype in ("f8E4M3FN", "f4E2M1FN", "f16", "i8")]
    [True, True, False, False]
    """
    return dtype.startswith(("f4", "f8"))


def is_complex(value: Value) -> bool:
    """Return whether elements are complex."""
    return element_type(value).startswith("complex")


def is_unsigned(value: Value) -> bool:
    """Return whether elements are integers without a sign; booleans are."""
    return element_type(value).startswith("ui") or is_boolean(value)


def width(value: Value) -> int:
    """Return the bits of an integer."""
    return int(element_type(value).lstrip("suif"))


def as_condition(b: ElementBuilder, boolean: Scalar) -> Scalar:
    """Return a boolean as an ``i1``."""
    return b.op("arith.trunci", boolean, dtype="i1")


def as_boolean(b: ElementBuilder, condition: Scalar) -> Scalar:
    """Return an ``i1`` as a boolean."""
    return b.op("arith.extui", condition, dtype="i8")


def operands(b: ElementBuilder, op: Op) -> list[Scalar]:
    """Return the elements of all operands."""
    return [b.operand(number) for number in range(len(op.operands))]


def widen_small_float(b: ElementBuilder, x: Scalar) -> Scalar:
    """Return a float of 8 or 4 bits as ``f32``, others as they are.

    Not all of these types have the numbers that a body compares with or begins from: some lack infinities, zero or
    negative numbers.
    """
    return b.op("arith.extf", x, dtype="f32") if is_small_float(x.dtype) else x


def move(b: ElementBuilder, op: Op) -> Scalar:
    """Read the element that the indexing map says."""
    return b.operand(0)


def call_region(b: ElementBuilder, op: Op) -> Sequence[Scalar]:
    """Call the region with the elements of all operands."""
    return b.call(op, operands(b, op))
