"""Find the dimensions along which a shard of a scalar body would compute something else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast, overload

from shardy_py.indexing import Expression, IndexingMap, VariableKind
from shardy_py.indexing.expressions import variables_of
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType, static_shape
from shardy_py.ir.interfaces.emission import ElementBuilder, Scalar
from shardy_py.plugins.bodies.body_text import INDEX_NAME, BodyText
from shardy_py.values import frozen


def whole_dims(emission: Any, op: Op, maps: Sequence[IndexingMap]) -> frozenset[int]:
    """Return the dimensions of the results along which a scalar body cannot be sharded.

    Those whose index it reads, and all of them where it reads operands elsewhere than their maps say.

    Args:
        emission: The body.
        op: The op.
        maps: The indexing maps of its operands.
    """
    if isinstance(emission, BodyText):
        return named_dims(emission)
    rank = len(static_shape(op.results[0].type) or ())
    watcher = _Watcher(rank, maps, op)
    try:
        emission(cast(ElementBuilder, watcher), op)
    except Exception:
        # Whoever builds an element gets the error; until then nothing is known.
        return frozenset(range(rank))
    return frozenset(watcher.dims)


def named_dims(body: BodyText) -> frozenset[int]:
    """Return the dimensions whose index a text names: ``d0``."""
    names = {node.id for item in body.results for node in ast.walk(item) if isinstance(node, ast.Name)}
    return frozenset(int(name[1:]) for name in names if INDEX_NAME.fullmatch(name))


@frozen
class _Watched:
    """A value of which the type is known, and that of indices where they come from.

    Args:
        dtype: Its type in a kernel.
        at: The result of a map that it is, and the sizes of the map's symbols; None for all others.
    """

    dtype: str
    at: tuple[Expression, tuple[int, ...]] | None = None


class _Indices(Sequence[Any]):
    """The index of an element, which records the dimensions that are read."""

    def __init__(self, rank: int, dims: set[int]) -> None:
        self._rank = rank
        self._dims = dims

    def __len__(self) -> int:
        return self._rank

    @overload
    def __getitem__(self, number: int) -> Any: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Any]: ...
    def __getitem__(self, number: int | slice) -> Any:
        dim_number = range(self._rank)[number]
        self._dims.update(dim_number if isinstance(dim_number, range) else (dim_number,))
        return [_Watched("index") for _ in dim_number] if isinstance(dim_number, range) else _Watched("index")

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])


class _Watcher:
    """An `ElementBuilder` that builds nothing and records the indices that a body reads.

    Args:
        rank: The number of dimensions of the results.
        maps: The indexing maps of the op.
        op: The op.
    """

    def __init__(self, rank: int, maps: Sequence[IndexingMap], op: Op) -> None:
        self.maps = maps
        self.dims: set[int] = set()
        self._rank = rank
        self._op = op

    @property
    def indices(self) -> Sequence[Any]:
        """The index of the element."""
        return _Indices(self._rank, self.dims)

    def operand(self, number: int, indices: Sequence[Any] | None = None) -> _Watched:
        """Return an element of an operand."""
        if indices is not None and [item.at for item in indices] != _places(self.maps[number]):
            self._sees_all()
        return _Watched(_kernel_dtype(self._op.operands[number].type))

    def op(self, name: str, *operands: _Watched, dtype: str | None = None, **attributes: Any) -> _Watched:
        """Return the result of an op."""
        for item in operands:
            if item.at is not None:
                self._reads(item.at[0])
        return _Watched(operands[0].dtype if dtype is None else dtype)

    def constant(self, value: complex, dtype: str) -> _Watched:
        """Return a constant."""
        return _Watched(dtype)

    def literal(self, op: Op) -> _Watched:
        """Return an element of a constant."""
        self._sees_all()
        return _Watched(_kernel_dtype(op.results[0].type))

    def apply(self, map_: IndexingMap, indices: Sequence[Any], symbols: Sequence[Any] = ()) -> list[_Watched]:
        """Return the results of a map."""
        self._sees_all()
        return [_Watched("index") for _ in map_.results]

    def inside(self, map_: IndexingMap, indices: Sequence[Any]) -> _Watched:
        """Return a condition."""
        self._sees_all()
        return _Watched("i1")

    def choose(self, condition: Scalar, then: Callable[[], _Watched], otherwise: Callable[[], _Watched]) -> _Watched:
        """Return the value of one of two branches."""
        return [then(), otherwise()][0]

    def reduce(
        self,
        map_: IndexingMap,
        initial: Sequence[_Watched],
        body: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]],
        indices: Sequence[_Watched] | None = None,
    ) -> list[Any]:
        """Return values that a loop carries over the symbols of a map."""
        if map_.constraints or indices is not None:
            self._sees_all()
        return list(body([_Watched("index", at) for at in _places(map_)], initial))

    def repeat(
        self, count: int, initial: Sequence[_Watched], body: Callable[[Sequence[Any]], Sequence[Any]]
    ) -> list[Any]:
        """Return values that a loop carries a number of times."""
        return list(body(initial))

    def call(self, op: Op, arguments: Sequence[_Watched], region: int = 0) -> list[_Watched]:
        """Return values of the types of the arguments."""
        return list(arguments[: len(op.results)])

    def _reads(self, index: Expression) -> None:
        self.dims.update(item.number for item in variables_of(index) if item.kind is VariableKind.DIM)

    def _sees_all(self) -> None:
        self.dims.update(range(self._rank))


def _places(map_: IndexingMap) -> list[tuple[Expression, tuple[int, ...]]]:
    """Return the results of a map, each with the sizes of the map's symbols."""
    sizes = tuple(bound.interval.size for bound in map_.ranges)
    return [(result, sizes) for result in map_.results]


def _kernel_dtype(type_: Any) -> str:
    """Return the type that elements have in a kernel: booleans are bytes, integers have no sign."""
    dtype = type_.element_type if isinstance(type_, TensorType) else str(type_)
    return "i8" if dtype == "i1" else dtype[1:] if dtype.startswith(("ui", "si")) else dtype
