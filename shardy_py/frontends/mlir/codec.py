"""Types and attributes between MLIR and the op graph; everything distinct is decoded once per module."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.frontends.mlir.attribute_decoders import DECODERS, decode_shardy, items_of, number_like
from shardy_py.frontends.mlir.newer_text import has_marks, marked_mesh, to_older
from shardy_py.ir.graph.attributes import OpaqueElements, RawAttribute, SymbolRef, Unit
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type
from shardy_py.sharding.axes import SdyAttribute
from shardy_py.sharding.combiner import reduction_op_code
from shardy_py.sharding.parse import format_attribute
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue
from shardy_py.support.identity import identity

_PLAIN_TENSOR = re.compile(r"tensor<((?:(?:\d+|\?)x)*)(\w+|complex<\w+>)>")
"""The text of nearly every tensor: its sizes, and an element type of MLIR's own."""


class TypeDecoder(dict[ir.Type, Type]):
    """Native types to types; a missing one is decoded at once, so that look-ups need no call."""

    __slots__ = ("by_text", "has_foreign")

    def __init__(self) -> None:
        self.by_text: dict[str, ir.Type] = {}
        self.has_foreign = False

    def __missing__(self, native: ir.Type) -> Type:
        text = str(native)
        decoded = _plain_tensor(text) or self._decode(native, text)
        self[native] = decoded
        self.by_text[text] = native
        return decoded

    def _decode(self, native: Any, text: str) -> Type:
        if not isinstance(native, ir.RankedTensorType):
            opaque = _opaque(text)
            self.has_foreign = self.has_foreign or opaque.is_foreign
            return opaque
        sizes = [None if size < 0 else size for size in native.shape]
        return _tensor(tuple(sizes), str(native.element_type), text)


# Equal types of all modules are the same object, as these are hashed and compared all the time.
_opaque = lru_cache(maxsize=8192)(OpaqueType)
_tensor = lru_cache(maxsize=8192)(TensorType)


@lru_cache(maxsize=8192)
def _plain_tensor(text: str) -> TensorType | None:
    """Return the type of a text of that form.

    To ask the bindings for its parts takes longer than to ask for its text.
    """
    match = _PLAIN_TENSOR.fullmatch(text)
    if match is None:
        return None
    sizes = [None if size == "?" else int(size) for size in match[1].split("x")[:-1]]
    return TensorType(tuple(sizes), match[2], text)


def is_plain(type_: Type) -> bool:
    """Return whether a type is nothing but its text, the same in all contexts of MLIR."""
    return isinstance(type_, TensorType) and _plain_tensor(type_.text) is type_


class Codec:
    """Decodes and encodes for one MLIR context; remembers what it has seen.

    Types and attributes are unique in their context, so they serve as keys.

    Attributes:
        types: Native types to types of the graph.
    """

    __slots__ = ("_decoded", "_dictionaries", "_has_marks", "_parsed", "_shardy", "context", "types")

    def __init__(self, context: ir.Context) -> None:
        self.context = context
        self.types = TypeDecoder()
        self._decoded: dict[ir.Attribute, Any] = {}
        self._parsed: dict[str, ir.Attribute] = {}
        self._has_marks = False
        self._shardy: dict[Any, ir.Attribute] = {}
        self._dictionaries: dict[tuple[tuple[str, int], ...], tuple[dict[str, Any], ir.Attribute]] = {}

    def encode_type(self, type_: Type) -> ir.Type:
        """Return a native type."""
        text = type_.text
        native = self.types.by_text.get(text)
        if native is None:
            native = self.types.by_text[text] = _parse(ir.Type.parse, text, self.context)
        return native

    def decode(self, native: ir.Attribute) -> Any:
        """Return an attribute in the form of `shardy_py.ir.graph.attributes`."""
        decoded = self._decoded.get(native)
        if decoded is None:
            decoded = self._decoded[native] = self._decode(native)
            if isinstance(decoded, SdyAttribute):
                self._shardy.setdefault(decoded, native)
        return decoded

    def _decode(self, native: ir.Attribute) -> Any:
        decoder = DECODERS.get(type(native))
        if decoder is not None:
            return decoder(self, native)
        text = str(native)
        if text.startswith("#sdy"):
            self._has_marks = self._has_marks or has_marks(text)
            return decode_shardy(text)
        if text.startswith(("dense", "sparse")):
            return OpaqueElements(native)
        return RawAttribute(text)

    def encode(self, value: Any, like: ir.Attribute | None = None) -> ir.Attribute:
        """Return a native attribute.

        Args:
            value: Any attribute of the graph.
            like: The attribute it replaces; parts that did not change keep their exact native form, numbers their
                width.
        """
        if like is not None:
            return self._encode_like(value, like)
        if isinstance(value, SdyAttribute):
            if type(value) is OpShardingRule:
                value = value.without_reductions
            native = self._shardy.get(value)
            if native is None:
                native = self._shardy[value] = self._parse_attribute(self._text_of(value))
            return native
        return self._encode_builtin(value)

    def parse_together(self, values: Iterable[Any]) -> None:
        """Parse the shardings among some attributes, and inside them, at once: each alone would take twice as long."""
        missing: dict[Any, str] = {}
        # Equal values are mostly the same object, and looking into each takes longer than telling them apart.
        for value in {identity(value): value for value in values}.values():
            for sharding in _shardings_in(value):
                if sharding not in self._shardy:
                    missing[sharding] = self._text_of(sharding)
        if missing:
            text = f"[{', '.join(missing.values())}]"
            # What MLIR does not accept is told of where it is encoded.
            with suppress(ir.MLIRError, ValueError):
                self._shardy.update(zip(missing, items_of(ir.Attribute.parse(text, self.context)), strict=True))

    def _text_of(self, value: Any) -> str:
        """Return the text of an attribute of Shardy; all meshes of a module are marked, or none."""
        text = _text_of(value)
        return marked_mesh(text) if self._has_marks and not has_marks(text) else text

    def _encode_like(self, value: Any, like: ir.Attribute) -> ir.Attribute:
        decoded = self.decode(like)
        if decoded is value or (type(decoded) is type(value) and decoded == value):
            return like
        if isinstance(value, tuple) and isinstance(like, ir.ArrayAttr):
            old = items_of(like)
            parts = [self.encode(part, old[min(i, len(old) - 1)] if old else None) for i, part in enumerate(value)]
            return ir.ArrayAttr.get(parts, self.context)
        if isinstance(value, Mapping) and isinstance(decoded, Mapping):
            return self._encode_dictionary_like(value, decoded, like)
        number = number_like(value, like)
        return self.encode(value) if number is None else number

    def _encode_dictionary_like(self, value: Mapping[str, Any], decoded: Mapping[str, Any], like: Any) -> ir.Attribute:
        named = {}
        for name, part in value.items():
            before = decoded.get(name)
            if part is before:
                named[name] = like[name]
            else:
                named[name] = self.encode(part, None if before is None else like[name])
        return ir.DictAttr.get(named, self.context)

    def _encode_builtin(self, value: Any) -> ir.Attribute:
        context = self.context
        if isinstance(value, dict):
            return self._encode_dictionary(value)
        if isinstance(value, bool):
            return ir.BoolAttr.get(value, context)
        if isinstance(value, int):
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), value)
        if isinstance(value, float):
            return ir.FloatAttr.get(ir.F64Type.get(context), value, self._unknown_location())
        if isinstance(value, str):
            return ir.StringAttr.get(value, context)
        if isinstance(value, (tuple, list)):
            return self._encode_sequence(value)
        if isinstance(value, Mapping):
            return self._encode_dictionary(value)
        if isinstance(value, Unit):
            return ir.UnitAttr.get(context)
        if isinstance(value, (TensorType, OpaqueType)):
            return ir.TypeAttr.get(self.encode_type(value), context)
        if isinstance(value, OpaqueElements):
            return value.native
        if isinstance(value, SymbolRef) and value.text == f"@{value.name}":
            return ir.FlatSymbolRefAttr.get(value.name, context)
        code = reduction_op_code(value.text) if isinstance(value, RawAttribute) else None
        if code is not None:
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(32, context), code)
        return self._parse_attribute(str(value))

    def _encode_dictionary(self, value: Mapping[str, Any]) -> ir.Attribute:
        # Those of the arguments of functions mostly hold a sharding and nothing else, and many the same. What is kept
        # keeps the values alive, so that no others get their identities.
        key = tuple([(name, identity(part)) for name, part in value.items()])
        known = self._dictionaries.get(key)
        if known is None:
            native = ir.DictAttr.get({name: self.encode(part) for name, part in value.items()}, self.context)
            known = self._dictionaries[key] = dict(value), native
        return known[1]

    def _encode_sequence(self, value: Sequence[Any]) -> ir.Attribute:
        kinds = set(map(type, value))
        if kinds == {bool}:
            return ir.DenseBoolArrayAttr.get(list(value), self.context)
        if kinds == {int}:
            return ir.DenseI64ArrayAttr.get(list(value), self.context)
        return ir.ArrayAttr.get([self.encode(item) for item in value], self.context)

    def _parse_attribute(self, text: str) -> ir.Attribute:
        native = self._parsed.get(text)
        if native is None:
            native = self._parsed[text] = _parse(ir.Attribute.parse, text, self.context)
        return native

    def _unknown_location(self) -> ir.Location:
        return ir.Location.unknown(self.context)


@lru_cache(maxsize=8192)
def _text_of(value: Any) -> str:
    """Return the text of a value of Shardy; programs of a process have many in common."""
    return to_older(format_attribute(value))


def _shardings_in(value: Any) -> Iterator[TensorSharding | TensorShardingPerValue]:
    if type(value) is TensorShardingPerValue or type(value) is TensorSharding:
        yield value
    elif type(value) is tuple:
        for item in value:
            if type(item) is dict:
                yield from [part for part in item.values() if type(part) is TensorSharding]


def _parse(parser: Callable[[str, ir.Context], Any], text: str, context: ir.Context) -> Any:
    try:
        return parser(text, context)
    except (ir.MLIRError, ValueError) as error:
        reason = str(error).splitlines()[-1] if str(error) else type(error).__name__
        raise VerificationError(
            Diagnostic("invalid-attribute", f"MLIR does not accept {text[:200]}: {reason}")
        ) from None
