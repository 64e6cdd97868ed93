"""References to symbols inside attributes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from shardy_py.ir.graph.attributes import (
    Attribute,
    DenseElements,
    OpaqueElements,
    RawAttribute,
    SymbolRef,
    shared_symbols,
)
from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue

_PLAIN = frozenset((bool, int, float, str, DenseElements, OpaqueElements, TensorType, OpaqueType))
"""The classes of most attributes, none of which refers to a symbol."""

_SYMBOL = re.compile(r'@(?:"((?:[^"\\]|\\.)*)"|([\w$.-]+))')


def symbols_of(values: Iterable[Attribute]) -> list[str]:
    """Return the names of the symbols to which attributes refer; a name may come more than once."""
    names: list[str] = []
    for value in values:
        kind = type(value)
        if kind is SymbolRef and "::" not in value.text:
            names.append(value.name)
        elif kind not in _PLAIN:
            names.extend(_symbols_in(value))
    return names


def symbols_in(attributes: Mapping[str, Attribute]) -> Collection[str]:
    """Return the names of the symbols to which the attributes of an op refer.

    The attributes of a frontend may know them already.
    """
    known = shared_symbols(attributes)
    if known is not None:
        return known
    return symbols_of(attributes.values()) if attributes else ()


def _symbols_in(value: Attribute) -> Iterator[str]:
    """Iterate over the names of the symbols to which an attribute refers; a name may come more than once."""
    if isinstance(value, (SymbolRef, RawAttribute)):
        for quoted, bare in _SYMBOL.findall(str(value)):
            yield quoted or bare
    elif isinstance(value, TensorSharding):
        if isinstance(value.mesh, str):
            yield value.mesh
    elif isinstance(value, TensorShardingPerValue):
        for sharding in value.shardings:
            yield from _symbols_in(sharding)
    elif isinstance(value, (tuple, list)):
        yield from symbols_of(value)
    elif isinstance(value, (dict, Mapping)):
        # A dictionary is known by its class; to ask whether something is a mapping takes longer.
        yield from symbols_of(value.values())
