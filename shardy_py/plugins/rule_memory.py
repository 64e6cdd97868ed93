"""Rules that a registry remembers from one program to the next, by what their ops look like."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from shardy_py.ir.graph.attributes import DenseElements, RawAttribute, Unit
from shardy_py.ir.graph.types import OpaqueType, TensorType
from shardy_py.ir.interfaces.ops import OpFacts

MANY_RULES = 20_000
"""The limit on the rules of a memory; it is emptied before it has more."""

_PLAIN = frozenset((bool, int, float, str, RawAttribute, DenseElements, Unit, TensorType, OpaqueType))
"""The classes of attributes that mean the same in all programs: symbols, meshes and native constants do not."""


class RuleMemory(dict[Hashable, OpFacts]):
    """Facts of ops by their names, attributes and types, as values, or by themselves; threads may share it."""

    __slots__ = ()

    def keep(self, key: Hashable, facts: OpFacts) -> OpFacts:
        """Remember facts, and return those that are remembered: the first of several that come at once."""
        if len(self) >= MANY_RULES:
            self.clear()
        return self.setdefault(key, facts)


def look_key(kind: Hashable, attributes: Hashable | None, operands: int, types: Iterable[Hashable]) -> Hashable | None:
    """Return the key of an op in a `RuleMemory`, the same for ops that look the same in any program.

    Args:
        kind: The name of the op, with what its rule reads around it.
        attributes: The `attributes_look` of its attributes; None for none, which has no key.
        operands: How many operands it has.
        types: The types of its operands and results.
    """
    return None if attributes is None else (kind, attributes, operands, *types)


def attributes_look(attributes: Mapping[str, Any]) -> Hashable | None:
    """Return attributes as a value that tells 1 and True apart; None where one has a meaning in its program only."""
    found: list[Hashable] = []
    for name, value in attributes.items():
        look = _look(value)
        if look is None:
            return None
        found.append((name, look))
    return tuple(found)


def _look(value: Any) -> Hashable | None:
    class_ = type(value)
    if class_ in _PLAIN:
        return (class_, value)
    if class_ is tuple or class_ is list:
        items = [_look(item) for item in value]
        return None if None in items else (tuple, *items)
    return attributes_look(value) if class_ is dict else None
