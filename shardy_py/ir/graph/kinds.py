"""Kinds of ops: what ops with the same name, attributes and types have in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from shardy_py.ir.graph.op_graph import Op, Value
from shardy_py.ir.graph.types import Type
from shardy_py.support.identity import identity

MANY_OWNERS = 4
"""The limit on the registries that keep facts with a kind."""
MANY_KINDS = 1_000
"""The limit on the kinds of ops with the same attributes; those that are known are forgotten before there are more."""


class OpKind:
    """The name and the types of some ops that have the same attributes, too; compared by identity.

    What depends on nothing else is asked once per kind. A frontend may keep kinds from run to run, so that nothing in
    them may be of one program.

    Attributes:
        name: The name of the ops.
        types: The types of their operands and results.
    """

    __slots__ = ("_facts", "name", "types")

    def __init__(self, name: str, types: Sequence[Type]) -> None:
        self.name = name
        self.types = types
        self._facts: tuple[tuple[object, Any], ...] = ()

    def facts(self, owner: object) -> Any:
        """Return what a registry knows of the ops, or None."""
        for known_owner, facts in self._facts:
            if known_owner is owner:
                return facts
        return None

    def keep_facts(self, owner: object, facts: Any) -> None:
        """Keep what a registry knows of the ops; that of the registry that came first goes if there are many."""
        self._facts = (*self._facts[-MANY_OWNERS + 1 :], (owner, facts))

    def __repr__(self) -> str:
        return f"<kind of {self.name}>"


class OpKinds(dict[Hashable, OpKind]):
    """The kinds of the ops that have the same attributes, by name and by the identities of their types."""

    __slots__ = ()

    def of(self, op: Op) -> OpKind:
        """Return the kind of an op, a new one where it is the first of its kind."""
        name, operands, results = op.name, op.operands, op.results
        key = identity_key(name, operands, results)
        kind = self.get(key)
        if kind is None:
            if len(self) >= MANY_KINDS:
                self.clear()
            # With the types, so that no others get their identities.
            kind = self.setdefault(key, OpKind(name, [value.type for value in (*operands, *results)]))
        return kind


def kind_of(op: Op) -> OpKind | None:
    """Return the kind of an op; None where its frontend knows no kinds, and where attributes or types changed.

    It is found once per op, and then kept with its attributes.
    """
    if not op.program.kinds_hold:
        return None
    attributes = op.attributes
    kind: OpKind | None = getattr(attributes, "kind", None)
    if kind is None:
        kinds: OpKinds | None = getattr(getattr(attributes, "key", None), "kinds", None)
        if kinds is None:
            return None
        kind = attributes.kind = kinds.of(op)  # type: ignore[attr-defined]
    return kind if kind.name == op.name else None


def identity_key(kind: Hashable, operands: Sequence[Value], results: Sequence[Value]) -> tuple[object, ...]:
    """Return a key that is equal for ops of a kind with the same types, for as long as these live.

    Identities are hashed much faster than types, and a frontend with keys of its own has one object for equal types.
    Most ops have one result and few operands; comprehensions would take twice as long for them.
    """
    count = len(operands)
    if len(results) == 1 and 0 < count < 3:
        if count == 1:
            return kind, identity(operands[0].type), identity(results[0].type)
        return kind, identity(operands[0].type), identity(operands[1].type), identity(results[0].type)
    # No identity is as small as this number, so that the two kinds of keys never meet.
    return (kind, count, *[identity(value.type) for value in (*operands, *results)])
