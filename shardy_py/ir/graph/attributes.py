"""Attribute values of ops, as plain Python where there is an obvious form, and the symbols that they refer to.

An attribute is one of: bool, int, float, str; a tuple (arrays, dense arrays of integers or booleans); a dict
(dictionaries); a value of `shardy_py.sharding`; a type of `shardy_py.ir.graph.types`; or one of the classes here.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import chain
from typing import Any, Protocol, runtime_checkable

from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.sharding.tensor import TensorSharding, TensorShardingPerValue
from shardy_py.support.late_patterns import late_pattern
from shardy_py.values import frozen

Attribute = Any


@runtime_checkable
class SharedAttributes(Protocol):
    """Attributes of an op, based on a set that many ops share, so that passes look at each set once.

    A frontend may give ops such mappings as `Op.attributes`; any other mapping does as well. The functions below ask
    either kind.
    """

    @property
    def key(self) -> object | None:
        """The same object for ops with the same attributes; None once those of the op changed."""
        ...

    @property
    def parts(self) -> tuple[object, object]:
        """Two objects that never change; where both are the same for two ops, so are the attributes."""
        ...

    @property
    def symbols(self) -> Sequence[str]:
        """The names of the symbols to which the attributes refer."""
        ...


def shared_key(attributes: Mapping[str, Attribute]) -> object | None:
    """Return `SharedAttributes.key`, or None for a mapping that is not shared."""
    return getattr(attributes, "key", None)


def shared_look(key: object) -> Hashable | None:
    """Return a value that is equal for the attributes with a key, and all that mean the same in any program.

    Args:
        key: A `SharedAttributes.key`, or None.

    Returns:
        What the key says of itself as its ``look``; None where it says nothing.
    """
    return getattr(key, "look", None)


def shared_parts(attributes: Mapping[str, Attribute]) -> tuple[object, object] | None:
    """Return `SharedAttributes.parts`, or None for a mapping that is not shared."""
    return getattr(attributes, "parts", None)


def shared_symbols(attributes: Mapping[str, Attribute]) -> Sequence[str] | None:
    """Return `SharedAttributes.symbols`, or None for a mapping that is not shared."""
    return getattr(attributes, "symbols", None)


def set_in_each(name: str, pairs: Iterator[tuple[MutableMapping[str, Attribute], Attribute]]) -> None:
    """Set one attribute of many ops.

    A class of mappings may have a method of this name, which does the same for all that are left, faster.

    Args:
        name: The name of the attribute.
        pairs: The attributes of each op, with the value.
    """
    for attributes, value in pairs:
        set_in_rest = getattr(attributes, "set_in_each", None)
        if set_in_rest is not None:
            set_in_rest(name, chain([(attributes, value)], pairs))
            return
        attributes[name] = value


@frozen(cache_hash=True)
class SymbolRef:
    """A reference to a symbol, for example the callee of a call."""

    name: str
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"@{self.name}"


@frozen(cache_hash=True)
class RawAttribute:
    """An attribute of a dialect the frontend does not decode, in MLIR's notation.

    For example ``#stablehlo.dot<lhs_contracting_dimensions = [1], ...>``.
    """

    text: str

    def __str__(self) -> str:
        return self.text


@frozen(cache_hash=True)
class DenseElements:
    """A dense integer elements attribute with its values, row-major.

    Only small ones are decoded; large constants stay a `RawAttribute`.
    """

    shape: tuple[int, ...]
    values: tuple[int, ...]
    text: str = ""

    def __str__(self) -> str:
        return self.text


@frozen
class Unit:
    """The unit attribute: present or not."""

    def __str__(self) -> str:
        return "unit"


UNIT = Unit()


@frozen(cache_hash=True)
class OpaqueElements:
    """An elements attribute that is not decoded: large constants, floating-point ones, resources.

    Equal where the native attributes are the same; its text is made on demand, it may be very long.
    """

    native: Any

    def __str__(self) -> str:
        return str(self.native)


def freeze(attribute: Attribute) -> Hashable:
    """Return an attribute as a hashable value that tells 1, 1.0 and True apart."""
    if isinstance(attribute, Mapping):
        return tuple([(name, freeze(attribute[name])) for name in sorted(attribute)])
    if isinstance(attribute, (tuple, list)):
        return tuple([freeze(item) for item in attribute])
    return (type(attribute), attribute)


_PLAIN = frozenset((bool, int, float, str, DenseElements, OpaqueElements, TensorType, OpaqueType))
"""The classes of most attributes, none of which refers to a symbol."""

_SYMBOL = late_pattern(r'@(?:"((?:[^"\\]|\\.)*)"|([\w$.-]+))')


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
