"""Meaning of the numbers in bytecode, as values, kept from run to run.

All sections of bytecode but the one with the ops say what the numbers in that one mean. Where they are the same, byte
for byte, as in an earlier run, so is the meaning, in another context of MLIR, too. What is kept holds values only, no
native object.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Any

from shardy_py.ir.graph.attributes import DenseElements, RawAttribute, SymbolRef, Unit
from shardy_py.ir.graph.kinds import MANY_KINDS, SharedOpKind, SharedOpKinds
from shardy_py.ir.graph.op_graph import Op
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type
from shardy_py.sharding.axes import SdyAttribute

MANY_TABLES = 8
"""The limit on the modules whose tables are kept; those that were used longest ago go first."""

_VALUES = frozenset(
    (bool, int, float, str, DenseElements, RawAttribute, SymbolRef, Unit, TensorType, OpaqueType),
)


class AttributeContents:
    """The values of a dictionary of attributes; compared by identity.

    Attributes:
        decoded: Name to attribute, for all names; None as long as they are not known, or if one holds a native object.
        holders: The names of the attributes that may refer to symbols; None as long as they are not known.
        symbols: The names of the symbols to which the attributes refer; None as long as they are not known.
        runs: In how many runs ops had these attributes.
    """

    __slots__ = ("decoded", "holders", "runs", "symbols")

    def __init__(self) -> None:
        self.decoded: dict[str, Any] | None = None
        self.holders: Sequence[str] | None = None
        self.symbols: Sequence[str] | None = None
        self.runs = 0

    def keep(self, decoded: dict[str, Any]) -> None:
        """Keep the values of all attributes, unless one of them is of this run only or could be changed in place."""
        if all(map(_is_value, decoded.values())):
            self.decoded = decoded


def _is_value(attribute: Any) -> bool:
    """Return whether an attribute is an immutable value without a native object in it."""
    kind = type(attribute)
    if kind is tuple:
        return all(map(_is_value, attribute))
    return kind in _VALUES or isinstance(attribute, SdyAttribute)


class Tables:
    """Meaning of the numbers in the bytecode of a module; numbers that did not come yet are missing.

    Attributes:
        names: The names of ops.
        types: The types, of those that are nothing but their text.
        result_types: The types of the results of ops.
        contents: The dictionaries of attributes.
        kinds: The kinds of ops.
        kinds_by_numbers: The same by the numbers of name, attributes and result types, and by the identities of the
            types of the operands, which live as long as the kinds.
    """

    __slots__ = ("contents", "kinds", "kinds_by_numbers", "names", "result_types", "types")

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.types: dict[int, Type] = {}
        self.result_types: dict[Hashable, Sequence[Type]] = {}
        self.contents: dict[int, AttributeContents] = {}
        self.kinds = SharedOpKinds()
        self.kinds_by_numbers: dict[Hashable, SharedOpKind] = {}

    def learn_kind(self, numbers: Hashable, op: Op, contents: AttributeContents) -> SharedOpKind:
        """Return the kind of an op that is the first of its numbers."""
        kind = self.kinds.of(op, contents)
        if len(self.kinds_by_numbers) < MANY_KINDS:
            self.kinds_by_numbers[numbers] = kind
        return kind

    def contents_of(self, number: int) -> AttributeContents:
        """Return the contents of a dictionary of attributes, and count the run."""
        contents = self.contents.get(number)
        if contents is None:
            contents = self.contents[number] = AttributeContents()
        contents.runs += 1
        return contents


class TableMemory:
    """The tables of the last modules by the bytes that give them their meaning; threads may share it."""

    __slots__ = ("_kept", "_lock")

    def __init__(self) -> None:
        self._kept: dict[bytes, Tables] = {}
        self._lock = Lock()

    def of(self, key: bytes) -> Tables:
        """Return the tables for all sections of bytecode but the one with the ops; new ones where none are kept.

        Args:
            key: The bytes; empty for tables that are not kept.
        """
        if not key:
            return Tables()
        with self._lock:
            tables = self._kept.pop(key, None) or Tables()
            if len(self._kept) >= MANY_TABLES:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = tables
        return tables


KEPT = TableMemory()
"""The memory of this process."""
