"""A builder that builds nothing: with it a scalar body tells the types of its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.emission import Scalar
from shardy_py.values import frozen


@frozen
class _Typed:
    """A value of which the type is all that is known."""

    dtype: str


class DryBuilder:
    """Gives values that have a type only.

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
        """Return what an op gives."""
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
    ) -> list[Scalar]:
        """Return what a loop begins with."""
        return list(initial)

    def repeat(
        self, count: int, initial: Sequence[Scalar], body: Callable[[Sequence[Scalar]], Sequence[Scalar]]
    ) -> list[Scalar]:
        """Return what a loop begins with."""
        return list(initial)

    def call(self, op: Op, arguments: Sequence[Scalar]) -> list[Scalar]:
        """Return values of the types of the arguments."""
        return list(arguments[: len(op.results)])
