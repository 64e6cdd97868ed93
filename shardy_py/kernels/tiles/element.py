"""The builder that scalar bodies of ops get at the level of tiles: their values are tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol, cast

from xdsl.dialects import arith, builtin
from xdsl.ir import Operation, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.indexing import IndexingMap
from shardy_py.ir.graph.program import Op
from shardy_py.kernels.dialect.types import element_dtype, scalar_type
from shardy_py.kernels.elemental.literals import literal_of
from shardy_py.kernels.elemental.scalars import (
    COMPARISONS,
    EXPANSIONS,
    is_widened,
    make_constant,
    make_op,
    problem_of,
    widened,
)
from shardy_py.kernels.tiles.tensor_ops import TENSOR_OPS
from shardy_py.plugins import ElementBuilder
from shardy_py.values import frozen

INDEX_BITS = 64
"""The bits that an index has where it becomes an integer."""
NOT_A_TILE = "the elements of its operand that it reads are not a tile"
SCALAR_LEVEL = "the scalar level takes it: emit(fusion), or leave --level tile out"


def refusal(code: str, message: str, op: Op | None, *, hint: str = "") -> UnsupportedError:
    """Return the error that says what the level of tiles has not, with the op and a hint at the scalar level.

    Args:
        code: The code.
        message: What it has not.
        op: The op.
        hint: What helps besides.
    """
    location, name = ("", "") if op is None else (op.location, op.name)
    hints = [hint, SCALAR_LEVEL] if hint else [SCALAR_LEVEL]
    return UnsupportedError(Diagnostic(code, message, location, name, "; or ".join(hints)))


@frozen(eq=False)
class TileValue:
    """A tensor of a kernel, as an op's scalar body sees it: by the type of its elements."""

    value: SSAValue

    @property
    def dtype(self) -> str:
        """The type of its elements in MLIR's notation."""
        return str(element_of(self.value))


def element_of(value: SSAValue) -> Any:
    """Return the type of the elements of a tensor."""
    type_: Any = value.type
    return type_.element_type


def _widened_condition(byte: TileValue) -> SSAValue | None:
    """Return the conditions that bytes were made of; None where they were not."""
    owner = byte.value.owner
    if not isinstance(owner, Operation) or owner.name != "arith.extui":
        return None
    return owner.operands[0] if element_of(owner.operands[0]) == builtin.i1 else None


class TileSource(Protocol):
    """Source of a scalar body's tensors, and place of its ops."""

    def add(self, op: Operation) -> SSAValue:
        """Add an op and return its first result."""
        ...

    def operand_tile(self, op: Op, number: int, indices: Sequence[TileValue] | None) -> SSAValue:
        """Return the elements of an operand that a tile of the op's result is computed from."""
        ...

    def index_tile(self, op: Op, dimension: int) -> SSAValue:
        """Return the index along a dimension of the elements of the op's tile."""
        ...

    def region_tile(self, op: Op, region: int, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Return what a region of an op computes of tensors."""
        ...


class TileElement:
    """Builds a tile of an op; implements `shardy_py.ir.interfaces.emission.ElementBuilder`.

    Args:
        source: The tensors that it reads.
        of: The op.
        shape: The shape of the tile.
        maps: The indexing maps of the op.
    """

    def __init__(self, source: TileSource, of: Op, shape: Sequence[int], maps: Sequence[IndexingMap]) -> None:
        self.maps = maps
        self._source = source
        self._of = of
        self._shape = tuple(shape)

    @property
    def indices(self) -> Sequence[TileValue]:
        """The index of the elements."""
        return _Indices(self._source, self._of, len(self._shape))

    def operand(self, number: int, indices: Sequence[TileValue] | None = None) -> TileValue:
        """Return the elements of an operand that the op's indexing map says."""
        return TileValue(self._source.operand_tile(self._of, number, indices))

    def op(self, name: str, *operands: TileValue, dtype: str | None = None, **attributes: Any) -> TileValue:
        """Add an op by its name, on tensors."""
        if (name, dtype) == ("arith.trunci", "i1") and (condition := _widened_condition(operands[0])) is not None:
            return TileValue(condition)
        if dtype is None and name in COMPARISONS:
            dtype = "i1"
        if is_widened(name, cast(Any, operands), dtype):
            return cast(TileValue, widened(cast(ElementBuilder, self), name, operands, dtype, attributes))
        result = element_of(operands[0].value) if dtype is None else scalar_type(dtype)
        is_narrow = isinstance(result, builtin.IntegerType) and result.width.data < INDEX_BITS
        if name == "arith.index_castui" and is_narrow:
            return self.op("arith.trunci", self.op(name, *operands, dtype=f"i{INDEX_BITS}"), dtype=dtype)
        if name in EXPANSIONS and len(operands) == 2:
            return cast(TileValue, EXPANSIONS[name](cast(ElementBuilder, self), *operands))
        elements = tuple(element_of(item.value) for item in operands)
        if problem := problem_of(name, elements, result, attributes.get("predicate", "")):
            hint = 'cast the operands to one type, or say what it gives: b.op(..., dtype="f32")'
            raise UnsupportedError(Diagnostic("scalar-op", problem, self._of.location, self._of.name, hint))
        made = make_op(name, [item.value for item in operands], builtin.TensorType(result, self._shape), attributes)
        if (class_ := TENSOR_OPS.get(name)) is not None:
            properties = {key: made.properties[key] for key in ("predicate",) if key in made.properties}
            types = list(made.result_types)
            made.erase()
            made = class_.create(operands=[item.value for item in operands], result_types=types, properties=properties)
        return TileValue(self._source.add(made))

    def constant(self, value: complex, dtype: str) -> TileValue:
        """Return a constant, rounded to its type."""
        return TileValue(self._source.add(tensor_constant(value, dtype, self._shape)))

    def literal(self, op: Op) -> TileValue:
        """Return the elements of a constant whose elements are all alike."""
        literal = literal_of(op)
        if isinstance(literal, complex):
            raise refusal("tile-op", "tiles have no complex elements", op)
        if isinstance(literal, float):
            return self.constant(literal, element_dtype(op.results[0]))
        if not literal.is_splat():
            raise refusal("tile-op", "the elements of the constant differ, and no buffer holds them", op)
        return self.constant(cast(Any, next(iter(literal.iter_values()))), element_dtype(op.results[0]))

    def choose(
        self, condition: TileValue, then: Callable[[], TileValue], otherwise: Callable[[], TileValue]
    ) -> TileValue:
        """Return the elements of one of two tensors; both are computed."""
        first, second = then(), otherwise()
        return self.op("arith.select", condition, first, second, dtype=first.dtype)

    def repeat(
        self, count: int, initial: Sequence[TileValue], body: Callable[[Sequence[TileValue]], Sequence[TileValue]]
    ) -> list[TileValue]:
        """Return values that are carried a number of times; every step has ops of its own."""
        carried = list(initial)
        for _ in range(count):
            carried = list(body(carried))
        return carried

    def call(self, op: Op, arguments: Sequence[TileValue], region: int = 0) -> list[TileValue]:
        """Return the results of a region of an op."""
        return [TileValue(value) for value in self._source.region_tile(op, region, [item.value for item in arguments])]

    def apply(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse an index that is computed element by element."""
        raise self._refused()

    inside = reduce = apply

    def _refused(self) -> UnsupportedError:
        return refusal("tile-op", NOT_A_TILE, self._of)


class _Indices(Sequence[TileValue]):
    """The index along each dimension, made when it is asked for."""

    def __init__(self, source: TileSource, of: Op, rank: int) -> None:
        self._source = source
        self._of = of
        self._dimensions = range(rank)

    def __len__(self) -> int:
        return len(self._dimensions)

    def __getitem__(self, number: Any) -> Any:
        dimensions = self._dimensions[number]
        if isinstance(dimensions, range):
            return [self[dimension] for dimension in dimensions]
        return TileValue(self._source.index_tile(self._of, dimensions))


def tensor_constant(value: complex, dtype: str, shape: Sequence[int]) -> Operation:
    """Return a tensor whose elements are all one number."""
    scalar: Any = make_constant(value, dtype)
    number = scalar.value.value.data
    type_: Any = builtin.TensorType(scalar.value.type, shape)
    return arith.ConstantOp(builtin.DenseIntOrFPElementsAttr.from_list(type_, [number]), type_)
