"""Decoders of native attributes by their class, and numbers as attributes in the width of those that they replace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol

from jaxlib.mlir import ir

from shardy_py.errors import ShardyError
from shardy_py.frontends.mlir.newer_text import to_newer
from shardy_py.ir.graph.attributes import UNIT, DenseElements, OpaqueElements, RawAttribute, SymbolRef
from shardy_py.ir.graph.types import TensorType, Type
from shardy_py.sharding.parse import parse_attribute

_LARGE = 1024
"""The number of elements above which a constant is not decoded."""
_DENSE_ARRAYS = (
    ir.DenseBoolArrayAttr,
    ir.DenseI8ArrayAttr,
    ir.DenseI16ArrayAttr,
    ir.DenseI32ArrayAttr,
    ir.DenseI64ArrayAttr,
    ir.DenseF32ArrayAttr,
    ir.DenseF64ArrayAttr,
)
WITHOUT_SYMBOLS: frozenset[type] = frozenset(
    (
        ir.BoolAttr,
        ir.IntegerAttr,
        ir.FloatAttr,
        ir.StringAttr,
        ir.UnitAttr,
        ir.TypeAttr,
        ir.DenseIntElementsAttr,
        ir.DenseFPElementsAttr,
        *_DENSE_ARRAYS,
    )
)
"""The classes of native attributes that cannot refer to a symbol, which one can tell without decoding them."""


class Decoding(Protocol):
    """The part of a codec that decoders call for the parts of an attribute."""

    @property
    def types(self) -> Mapping[ir.Type, Type]:
        """Native types to types of the graph."""
        ...

    def decode(self, native: ir.Attribute) -> Any:
        """Return an attribute in the form of `shardy_py.ir.graph.attributes`."""
        ...


@lru_cache(maxsize=4096)
def decode_shardy(text: str) -> Any:
    """Return the value of an attribute of Shardy in its text; a `RawAttribute` for others."""
    try:
        return parse_attribute(to_newer(text))
    except ShardyError:
        # Attributes of the dialect that are no part of the vocabulary (enumerations, lists of axes of collectives).
        return RawAttribute(text)


def items_of(native: ir.ArrayAttr) -> list[ir.Attribute]:
    """Return the elements of an array attribute."""
    return [native[index] for index in range(len(native))]


def _decode_array(codec: Decoding, native: ir.ArrayAttr) -> Any:
    try:
        return tuple([codec.decode(item) for item in items_of(native)])
    except TypeError:
        # The bindings have no class for some elements (complex constants, locations).
        return RawAttribute(str(native))


def _decode_dictionary(codec: Decoding, native: ir.DictAttr) -> Any:
    try:
        names = [native[index].name for index in range(len(native))]
        return {name: codec.decode(native[name]) for name in names}
    except TypeError:
        return RawAttribute(str(native))


def _decode_elements(codec: Decoding, native: ir.DenseIntElementsAttr) -> Any:
    type_ = codec.types[native.type]
    if len(native) > _LARGE or not isinstance(type_, TensorType):
        return OpaqueElements(native)
    try:
        return DenseElements(type_.shape, _elements(native, type_), str(native))  # type: ignore[arg-type]
    except BufferError:
        # The bindings know no integers of less than a byte, and none of more than eight.
        return OpaqueElements(native)


def _elements(native: ir.DenseIntElementsAttr, type_: TensorType) -> tuple[int, ...]:
    """Return the elements in row-major order; from a buffer, as the bindings take long to give one after the other."""
    if type_.element_type == "index":
        # These count as signed in the buffer.
        return tuple([int(item) for item in native])
    items: Any = memoryview(native).tolist()
    if type_.rank == 0:
        return (int(items),)
    for _ in range(type_.rank - 1):
        items = chain.from_iterable(items)
    return tuple(map(int, items))


def _decode_symbol(codec: Decoding, native: ir.Attribute) -> SymbolRef:
    return SymbolRef(native.value, str(native))


def _decode_nested_symbol(codec: Decoding, native: ir.Attribute) -> SymbolRef:
    return SymbolRef(native.value[0], str(native))


def _decode_value(codec: Decoding, native: Any) -> Any:
    return native.value


def _decode_string(codec: Decoding, native: ir.StringAttr) -> Any:
    try:
        return native.value
    except (RuntimeError, UnicodeDecodeError):
        # Backend configurations may hold any bytes; MLIR's notation escapes them.
        return RawAttribute(str(native))


def _decode_dense_array(codec: Decoding, native: Any) -> Any:
    # The bindings end an iteration with an error of C++, which takes longer than all the rest.
    return tuple([native[index] for index in range(len(native))])


DECODERS: dict[type, Callable[[Decoding, Any], Any]] = {
    ir.BoolAttr: _decode_value,
    ir.IntegerAttr: _decode_value,
    ir.FloatAttr: _decode_value,
    ir.StringAttr: _decode_string,
    ir.UnitAttr: lambda codec, native: UNIT,
    ir.TypeAttr: lambda codec, native: codec.types[native.value],
    ir.FlatSymbolRefAttr: _decode_symbol,
    ir.SymbolRefAttr: _decode_nested_symbol,
    ir.ArrayAttr: _decode_array,
    ir.DictAttr: _decode_dictionary,
    ir.DenseIntElementsAttr: _decode_elements,
    ir.DenseFPElementsAttr: lambda codec, native: OpaqueElements(native),
    **dict.fromkeys(_DENSE_ARRAYS, _decode_dense_array),
}


_Limits = tuple[int, int]


def _signed(width: int) -> _Limits:
    return -(1 << (width - 1)), (1 << (width - 1)) - 1


_ARRAYS: Mapping[Any, _Limits | None] = {
    ir.DenseI8ArrayAttr: _signed(8),
    ir.DenseI16ArrayAttr: _signed(16),
    ir.DenseI32ArrayAttr: _signed(32),
    ir.DenseI64ArrayAttr: _signed(64),
    ir.DenseF32ArrayAttr: None,
    ir.DenseF64ArrayAttr: None,
}
"""The classes of arrays to the least and the largest number in them; None for floats."""


def number_like(value: Any, like: ir.Attribute) -> ir.Attribute | None:
    """Return a number, or an array of numbers, of the type of another one.

    Args:
        value: An attribute of the graph.
        like: The native attribute that it replaces.

    Returns:
        None where one of them is something else, or where the number does not fit the type.
    """
    if isinstance(value, (tuple, list)):
        kind = type(like)
        if kind not in _ARRAYS or not all(_fits(item, _ARRAYS[kind]) for item in value):
            return None
        return kind.get(list(value), like.context)
    if isinstance(like, ir.IntegerAttr) and _fits(value, _limits_of(like.type)):
        return ir.IntegerAttr.get(like.type, value)
    if isinstance(like, ir.FloatAttr) and _fits(value, None):
        return ir.FloatAttr.get(like.type, float(value), ir.Location.unknown(like.context))
    return None


def _fits(value: Any, limits: _Limits | None) -> bool:
    """Return whether a value is an integer within limits, or any number where there are none."""
    if isinstance(value, bool):
        return False
    if limits is None:
        return isinstance(value, (int, float))
    return isinstance(value, int) and limits[0] <= value <= limits[1]


def _limits_of(type_: ir.Type) -> _Limits:
    # The bindings take integers of eight bytes.
    width = min(type_.width, 64) if isinstance(type_, ir.IntegerType) else 64
    if isinstance(type_, ir.IntegerType) and type_.is_unsigned:
        return 0, (1 << min(width, 63)) - 1
    return _signed(width)
