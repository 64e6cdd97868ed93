"""Kinds of ops: what ops with the same name, attributes and types have in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from shardy_py.ir.graph.op_graph import Op, Value
from shardy_py.ir.graph.types import Type
from shardy_py.support.identity import identity

if TYPE_CHECKING:
    from shardy_py.ir.graph.program import Program

MANY_KINDS = 20_000
"""The limit on the kinds that are kept together; others are found anew by each op."""


class SharedOpKind:
    """The name and the types of some ops that have the same attributes, too; compared by identity.

    What depends on nothing else is asked once per kind. A frontend may keep kinds from run to run, so that nothing in
    them may be of one program.

    Attributes:
        name: The name of the ops.
        types: The types of their operands and results.
        renamed: The kind of such ops under the name that they got last; None as long as they keep theirs.
        known: The registry that asked last with the facts that it has of the ops, as one value: threads share kinds.
    """

    __slots__ = ("known", "name", "renamed", "types")

    def __init__(self, name: str, types: Sequence[Type]) -> None:
        self.name = name
        self.types = types
        self.renamed: SharedOpKind | None = None
        self.known: tuple[object, Any] = None, None

    def of_name(self, name: str) -> SharedOpKind:
        """Return the kind of ops of another name with the same attributes and types."""
        kind = self.renamed
        if kind is None or kind.name != name:
            kind = self.renamed = SharedOpKind(name, self.types)
        return kind

    def __repr__(self) -> str:
        return f"<kind of {self.name}>"


class SharedOpKinds(dict[Hashable, SharedOpKind]):
    """Kinds of ops, by their attributes, by their name, and by the identities of their types."""

    __slots__ = ()

    def of(self, op: Op, attributes: object) -> SharedOpKind:
        """Return the kind of an op, a new one where it is the first of its kind.

        Args:
            op: The op.
            attributes: The same object for ops with the same attributes, which lives as long as the kinds.
        """
        name, operands, results = op.name, op.operands, op.results
        key = identity_key(attributes, name, operands, results)
        kind = self.get(key)
        if kind is None:
            # With the types, so that no others get their identities.
            kind = SharedOpKind(name, [value.type for value in (*operands, *results)])
            if len(self) < MANY_KINDS:
                kind = self.setdefault(key, kind)
        return kind


def kind_of(op: Op) -> SharedOpKind | None:
    """Return the kind of an op; None where its frontend knows no kinds, and where attributes or types changed.

    It is found once per op, and then kept with its attributes.
    """
    if not op.program.kinds_hold:
        return None
    attributes = op.attributes
    kind: SharedOpKind | None = getattr(attributes, "kind", None)
    if kind is None or kind.name != op.name:
        key: Any = getattr(attributes, "key", None)
        kinds: SharedOpKinds | None = getattr(key, "kinds", None)
        if kinds is None:
            return None
        kind = attributes.kind = kinds.of(op, key.contents)  # type: ignore[attr-defined]
    return kind


def kinds_of(program: Program, ops: Sequence[Op]) -> Sequence[SharedOpKind | None]:
    """Return `kind_of` each op of a program; nearly all ops know their kind already, and are not asked by a call."""
    if not program.kinds_hold:
        return [None] * len(ops)
    return [
        kind if (kind := getattr(op.attributes, "kind", None)) is not None and kind.name == op.name else kind_of(op)
        for op in ops
    ]


def shares_facts(kind: SharedOpKind, program: Program, facts: object) -> bool:
    """Return whether all ops of a kind have the facts that a registry has just told of one of them."""
    return kind.known[1] is facts and not program.rules


def identity_key(
    attributes: object, kind: Hashable, operands: Sequence[Value], results: Sequence[Value]
) -> tuple[object, ...]:
    """Return a key that is equal for ops of a kind with the same attributes and types, for as long as these live.

    Identities are hashed much faster than types, and a frontend with keys of its own has one object for equal types.
    Most ops have one result and few operands; comprehensions would take twice as long for them.
    """
    count = len(operands)
    if len(results) == 1 and 0 < count < 3:
        if count == 1:
            return attributes, kind, identity(operands[0].type), identity(results[0].type)
        return attributes, kind, identity(operands[0].type), identity(operands[1].type), identity(results[0].type)
    # No identity is as small as this number, so that the two kinds of keys never meet.
    return (attributes, kind, count, *[identity(value.type) for value in (*operands, *results)])
