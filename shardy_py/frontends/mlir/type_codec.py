"""Decoding of native types, each distinct one once."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir

from shardy_py.ir.graph.types import OpaqueType, TensorType, Type

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
            decoded = OpaqueType(text)
            self.has_foreign = self.has_foreign or decoded.is_foreign
            return decoded
        sizes = [None if size < 0 else size for size in native.shape]
        return TensorType(tuple(sizes), str(native.element_type), text)


@lru_cache(maxsize=8192)
def _plain_tensor(text: str) -> TensorType | None:
    """Return a type, the same object for equal types of all modules: these are hashed and compared all the time.

    To ask the bindings for its parts takes longer than to ask for its text.
    """
    match = _PLAIN_TENSOR.fullmatch(text)
    if match is None:
        return None
    sizes = [None if size == "?" else int(size) for size in match[1].split("x")[:-1]]
    return TensorType(tuple(sizes), match[2], text)
