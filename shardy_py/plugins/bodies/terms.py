"""Terms of scalar bodies: values with their types, numbers that are open, and a builder that gives types only."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from shardy_py.errors import Diagnostic, PluginError
from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.emission import ElementBuilder, Scalar
from shardy_py.values import frozen

BOOLEAN, INDEX = "i1", "index"
HALVES = ("f16", "bf16")
"""Floats of 16 bits."""

BYTES = ("f8E3M4", "f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ")
"""Floats of 8 bits."""

CASTS = (
    *(*BYTES, "f16", "bf16", "f32", "f64"),
    *(f"{sign}i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    BOOLEAN,
)
_FLOAT = re.compile(r"b?f\d+|tf32|f8\w+")


@frozen(eq=False)
class Term:
    """A part of an expression.

    Args:
        dtype: Its type in MLIR's notation, with the sign of integers; "" for a number without a type.
        value: Its value; None for a number.
        number: The number.
    """

    dtype: str = ""
    value: Scalar | None = None
    number: complex = 0

    @property
    def is_number(self) -> bool:
        """True for an open number, which takes the type of the other term."""
        return self.value is None

    @property
    def scalar(self) -> Scalar:
        """The value of a term that has one."""
        assert self.value is not None
        return self.value

    @property
    def is_float(self) -> bool:
        """True if it is a floating-point number."""
        return bool(_FLOAT.fullmatch(self.dtype))

    @property
    def is_short(self) -> bool:
        """True if it is a floating-point number of 16 bits or less, which sums are not carried in."""
        return self.dtype in (*HALVES, *BYTES)

    @property
    def is_complex(self) -> bool:
        """True if it is a complex number."""
        return self.dtype.startswith("complex")

    @property
    def is_boolean(self) -> bool:
        """True if it is a condition."""
        return self.dtype == BOOLEAN

    @property
    def is_unsigned(self) -> bool:
        """True if it is an integer without a sign."""
        return self.dtype.startswith("ui")

    @property
    def is_integer(self) -> bool:
        """True if it is an integer or an index."""
        return not (self.is_number or self.is_float or self.is_complex or self.is_boolean)

    @property
    def bits(self) -> int:
        """The bits of an integer or a float."""
        return 64 if self.dtype == INDEX else int(re.findall(r"\d+", self.dtype)[0])


def scalar_dtype(dtype: str) -> str:
    """Return the type that a value has while it is computed: integers have no sign.

    >>> scalar_dtype("ui8"), scalar_dtype("i1"), scalar_dtype("bf16")
    ('i8', 'i1', 'bf16')
    """
    return dtype[1:] if dtype.startswith(("ui", "si")) else dtype


def mistake(message: str, hint: str = "") -> PluginError:
    """Return the error about a body that does not fit its op."""
    return PluginError(Diagnostic("emission-failed", f"the scalar body: {message}", hint=hint))


def with_type(b: ElementBuilder, term: Term, dtype: str) -> Term:
    """Return a term of a type: numbers take it, other terms have it.

    Raises:
        PluginError: a term has another type, or the number does not fit.
    """
    if not term.is_number:
        if term.dtype != dtype:
            hint = f"write {dtype}(...) around one of them" if dtype in CASTS else ""
            raise mistake(f"{term.dtype} stands where {dtype} is needed", hint)
        return term
    target = Term(dtype, value=object())  # type: ignore[arg-type]
    number = term.number
    is_whole = number == int(number.real) if abs(number) < float("inf") else False
    if target.is_boolean and number not in (0, 1):
        raise mistake(f"{number} is not a condition", "compare it: x != 0")
    if (target.is_integer and not is_whole) or (not target.is_complex and isinstance(number, complex)):
        raise mistake(f"{number} is not {dtype}", "write f32(...) around what it stands beside")
    return Term(dtype, b.constant(number, scalar_dtype(dtype)))


def alike(b: ElementBuilder, left: Term, right: Term) -> tuple[Term, Term]:
    """Return two terms of one type.

    Raises:
        PluginError: they have different ones.
    """
    if left.is_number and not right.is_number:
        return with_type(b, left, right.dtype), right
    if left.dtype != right.dtype and not right.is_number:
        hint = f"write {left.dtype}(...) around the other" if left.dtype in CASTS else "bring both to one type"
        raise mistake(f"{left.dtype} and {right.dtype} stand side by side", hint)
    return left, with_type(b, right, left.dtype)


@frozen
class _Typed:
    """A value of which the type is all that is known."""

    dtype: str


class DryBuilder:
    """A builder whose values have a type only.

    Args:
        rank: The number of dimensions of the result.
        maps: The indexing maps of the op.
        element_dtype: Returns the type that an element of an operand has in a kernel.
    """

    def __init__(self, rank: int, maps: Sequence[IndexingMap], element_dtype: Callable[[int], str]) -> None:
        self._rank = rank
        self._maps = maps
        self._element_dtype = element_dtype

    @property
    def indices(self) -> Sequence[Scalar]:
        """The index of the element."""
        return [_Typed("index") for _ in range(self._rank)]

    @property
    def maps(self) -> Sequence[IndexingMap]:
        """The indexing maps of the op."""
        return self._maps

    def operand(self, number: int, indices: Sequence[Scalar] | None = None) -> Scalar:
        """Return an element of an operand."""
        return _Typed(self._element_dtype(number))

    def op(self, name: str, *operands: Scalar, dtype: str | None = None, **attributes: Any) -> Scalar:
        """Return the result of an op."""
        return _Typed(operands[0].dtype if dtype is None else dtype)

    def constant(self, value: complex, dtype: str) -> Scalar:
        """Return a constant."""
        return _Typed(dtype)

    def literal(self, op: Op) -> Scalar:
        """Return an element of a constant."""
        type_ = op.results[0].type
        return _Typed(type_.element_type if isinstance(type_, TensorType) else str(type_))

    def apply(self, map_: IndexingMap, indices: Sequence[Scalar], symbols: Sequence[Scalar] = ()) -> list[Scalar]:
        """Return the results of a map."""
        return [_Typed("index") for _ in map_.results]

    def inside(self, map_: IndexingMap, indices: Sequence[Scalar]) -> Scalar:
        """Return a condition."""
        return _Typed("i1")

    def choose(self, condition: Scalar, then: Callable[[], Scalar], otherwise: Callable[[], Scalar]) -> Scalar:
        """Return the value of one of two branches."""
        return [then(), otherwise()][0]

    def reduce(
        self,
        map_: IndexingMap,
        initial: Sequence[Scalar],
        body: Callable[[Sequence[Scalar], Sequence[Scalar]], Sequence[Scalar]],
        indices: Sequence[Scalar] | None = None,
    ) -> list[Scalar]:
        """Return the initial values of a loop."""
        return list(initial)

    def repeat(
        self, count: int, initial: Sequence[Scalar], body: Callable[[Sequence[Scalar]], Sequence[Scalar]]
    ) -> list[Scalar]:
        """Return the initial values of a loop."""
        return list(initial)

    def call(self, op: Op, arguments: Sequence[Scalar], region: int = 0) -> list[Scalar]:
        """Return values of the types of the arguments."""
        return list(arguments[: len(op.results)])
