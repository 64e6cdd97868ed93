"""Types and attributes between xDSL and the op graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects import builtin as xb
from xdsl.ir import Attribute as Native
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError as NativeParseError

from shardy_py.errors import Diagnostic, ShardyError, VerificationError
from shardy_py.frontends.xdsl.load import make_context
from shardy_py.ir.graph.attributes import UNIT, DenseElements, OpaqueElements, RawAttribute, SymbolRef, Unit
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type
from shardy_py.sharding.combiner import reduction_op_code
from shardy_py.sharding.parse import format_attribute, parse_attribute

_LARGE = 1024
"""The number of elements above which a constant is not decoded."""


class XdslCodec:
    """Decodes and encodes; remembers the native form of everything it decoded, by text."""

    def __init__(self) -> None:
        self._types: dict[Native, Type] = {}
        self._native_types: dict[str, Native] = {}
        self._native: dict[str, Native] = {}
        self._context: Any = None

    def decode_type(self, native: Native) -> Type:
        """Return a type."""
        decoded = self._types.get(native)
        if decoded is None:
            decoded = self._types[native] = _decode_type(native)
            self._native_types[str(decoded)] = native
        return decoded

    def encode_type(self, type_: Type) -> Native:
        """Return a native type."""
        text = str(type_)
        native = self._native_types.get(text)
        if native is None:
            native = self._native_types[text] = self._parse(text, Parser.parse_type)
        return native

    def decode(self, native: Native) -> Any:
        """Return an attribute in the form of `shardy_py.ir.graph.attributes`."""
        decoder = next((_DECODERS[class_] for class_ in type(native).__mro__ if class_ in _DECODERS), None)
        if decoder is not None:
            return decoder(self, native)
        return self.raw(native)

    def raw(self, native: Native) -> Any:
        """Return an attribute as its text, or as the value of the vocabulary that this is the text of."""
        if isinstance(native, xb.TypeAttribute):
            return self.decode_type(native)
        text = str(native)
        self._native[text] = native
        if text.startswith("#sdy"):
            try:
                return parse_attribute(text)
            except ShardyError:
                # Attributes of the dialect that are no part of the vocabulary (enumerations).
                return RawAttribute(text)
        return RawAttribute(text)

    def encode(self, value: Any, like: Native | None = None) -> Native:
        """Return a native attribute.

        Args:
            value: Any attribute of the graph.
            like: The attribute it replaces; what did not change keeps its exact native form.
        """
        if like is not None:
            decoded = self.decode(like)
            if type(decoded) is type(value) and decoded == value:
                return like
        if isinstance(value, bool):
            return xb.IntegerAttr.from_bool(value)
        if isinstance(value, int):
            width = like.type if isinstance(like, xb.IntegerAttr) else xb.i64
            return xb.IntegerAttr(value, width)
        if isinstance(value, float):
            return xb.FloatAttr(value, like.type if isinstance(like, xb.FloatAttr) else xb.f64)
        if isinstance(value, str):
            return xb.StringAttr(value)
        if isinstance(value, (tuple, list)):
            return self._encode_sequence(value, like)
        if isinstance(value, Mapping):
            known = like.data if isinstance(like, xb.DictionaryAttr) else {}
            return xb.DictionaryAttr({key: self.encode(part, known.get(key)) for key, part in value.items()})
        if isinstance(value, Unit):
            return xb.UnitAttr()
        if isinstance(value, (TensorType, OpaqueType)):
            return self.encode_type(value)
        if isinstance(value, OpaqueElements):
            return value.native
        return self._encode_text(value)

    def _encode_sequence(self, value: Any, like: Native | None) -> Native:
        if isinstance(like, xb.DenseArrayBase) and like.elt_type != xb.i1:
            kind = int if isinstance(like.elt_type, xb.IntegerType) else float
            if all(type(item) is kind for item in value):
                return xb.DenseArrayBase.from_list(like.elt_type, list(value))
        if value and all(type(item) is int for item in value):
            return xb.DenseArrayBase.from_list(xb.i64, list(value))
        if value and all(type(item) is bool for item in value):
            return xb.DenseArrayBase.from_list(xb.i1, list(value))
        old = like.data if isinstance(like, xb.ArrayAttr) else ()
        return xb.ArrayAttr(
            [self.encode(part, old[min(i, len(old) - 1)] if old else None) for i, part in enumerate(value)]
        )

    def _encode_text(self, value: Any) -> Native:
        text = str(value) if isinstance(value, (RawAttribute, DenseElements, SymbolRef)) else format_attribute(value)
        code = reduction_op_code(text)
        if code is not None:
            return xb.IntegerAttr(code, xb.i32)
        native = self._native.get(text)
        if native is None:
            native = self._native[text] = self._parse(text, Parser.parse_attribute)
        return native

    def _parse(self, text: str, parse: Callable[[Any], Any]) -> Any:
        if self._context is None:
            self._context = make_context()
        try:
            return parse(Parser(self._context, text))
        except NativeParseError as error:
            message = f"xDSL does not accept {text[:200]}: {error.msg}"
            raise VerificationError(Diagnostic("invalid-attribute", message)) from None


def _decode_type(native: Native) -> Type:
    text = str(native)
    if not isinstance(native, xb.TensorType):
        return OpaqueType(text)
    sizes = tuple(None if size < 0 else size for size in native.get_shape())
    return TensorType(sizes, str(native.element_type), text)


def _decode_integer(codec: XdslCodec, native: Any) -> Any:
    is_bool = isinstance(native.type, xb.IntegerType) and native.type.width.data == 1
    return bool(native.value.data) if is_bool else native.value.data


def _decode_symbol(codec: XdslCodec, native: Any) -> SymbolRef:
    text = str(native)
    codec._native[text] = native
    return SymbolRef(native.root_reference.data, text)


def _decode_elements(codec: XdslCodec, native: Any) -> Any:
    type_ = codec.decode_type(native.type)
    integral = isinstance(native.get_element_type(), (xb.IntegerType, xb.IndexType))
    if not isinstance(type_, TensorType) or not type_.is_static or not integral or len(native) > _LARGE:
        return OpaqueElements(native)
    text = str(native)
    codec._native[text] = native
    return DenseElements(type_.shape, tuple(int(item) for item in native.get_values()), text)  # type: ignore[arg-type]


def _decode_dense_array(native: Any) -> tuple[Any, ...]:
    values = tuple(native.get_values())
    # The only bit of a boolean is its sign.
    return tuple(map(bool, values)) if native.elt_type == xb.i1 else values


_DECODERS: dict[type, Callable[[XdslCodec, Any], Any]] = {
    xb.StringAttr: lambda codec, native: native.data,
    xb.IntegerAttr: _decode_integer,
    xb.FloatAttr: lambda codec, native: native.value.data,
    xb.UnitAttr: lambda codec, native: UNIT,
    xb.SymbolRefAttr: _decode_symbol,
    xb.ArrayAttr: lambda codec, native: tuple([codec.decode(item) for item in native.data]),
    xb.DictionaryAttr: lambda codec, native: {name: codec.decode(item) for name, item in native.data.items()},
    xb.DenseArrayBase: lambda codec, native: _decode_dense_array(native),
    xb.DenseIntOrFPElementsAttr: _decode_elements,
    xb.DenseResourceAttr: lambda codec, native: OpaqueElements(native),
}
