"""Decoding of native types, each distinct one once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir

from shardy_py.ir.types import OpaqueType, TensorType, Type


class TypeDecoder(dict[ir.Type, Type]):
    """Native types to types; a missing one is decoded at once, so that look-ups need no call."""

    def __init__(self) -> None:
        self.by_text: dict[str, ir.Type] = {}
        self.has_foreign = False
        self._element_types: dict[ir.Type, str] = {}

    def __missing__(self, native: ir.Type) -> Type:
        decoded: Type
        if isinstance(native, ir.RankedTensorType):
            decoded = self._decode_tensor(native)
        else:
            decoded = OpaqueType(str(native))
            self.has_foreign = self.has_foreign or decoded.is_foreign
        self[native] = decoded
        self.by_text[decoded.text] = native
        return decoded

    def _decode_tensor(self, native: Any) -> TensorType:
        sizes = [None if size < 0 else size for size in native.shape]
        element = native.element_type
        # The text of a type takes longer than all the rest, but there are few element types.
        element_type = self._element_types.get(element)
        if element_type is None:
            element_type = self._element_types[element] = str(element)
        return _tensor_type(tuple(sizes), element_type, "" if native.encoding is None else str(native))


@lru_cache(maxsize=8192)
def _tensor_type(shape: tuple[int | None, ...], element_type: str, text: str) -> TensorType:
    """Return a type, the same object for equal types of all modules: these are hashed and compared all the time."""
    return TensorType(shape, element_type, text)
