"""Merge the copies of constants again that turned out to be sharded alike.

Mirrors constant_or_scalar_merger.cc::ConstantOrScalarMergerPass.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import ClassVar, NamedTuple

from shardy_py.ir.graph.attributes import Attribute, freeze, shared_parts
from shardy_py.ir.graph.kinds import kinds_of
from shardy_py.ir.graph.op_names import CONSTANT
from shardy_py.ir.graph.program import Op, Program, Region
from shardy_py.ir.graph.types import is_scalar
from shardy_py.ir.graph.walk import names_with_trait, ops_among
from shardy_py.ir.interfaces.ops import AsSdyConstant, Broadcast, ConstantLike, OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.support.identity import identity
from shardy_py.values import NoFields


class ConstantOrScalarMergerPass(NoFields):
    """Replace each constant, and each broadcast of a scalar, by an equal one that comes first in the same region.

    Equal means the same attributes and the same sharding. What is computed from constants stays apart.
    """

    name: ClassVar[str] = "sdy-constant-or-scalar-merger"

    def run(self, program: Program, context: PassContext) -> None:
        """Merge the constants of a program."""
        semantics, log, first_ops = context.semantics, context.copies, _FirstOps(program)
        kinds: dict[str, _Kind] = {}
        # What replaces the ops of a kind; most need no other look. No identity of a sharding comes twice, as all of
        # them are there before the first op goes.
        known: dict[Hashable, Op] = {}
        sharding_of = program.shardings.get
        ops = ops_among(program, names_with_trait(program, semantics, ConstantLike, Broadcast))
        for op, shared_kind in zip(ops, kinds_of(program, ops), strict=True):
            region = op.parent.parent if op.parent else None
            operands, results = op.operands, op.results
            if region is None or len(operands) > 1:
                continue
            key: Hashable = None
            if shared_kind is not None and len(results) == 1:
                key = region, shared_kind, identity(sharding_of(results[0].id)), *operands
            replacement = known.get(key)
            if replacement is None:
                kind = kinds.get(op.name) or _kind_of(op, semantics, kinds)
                if not kind.is_constant and not (kind.is_broadcast and operands and is_scalar(operands[0].type)):
                    continue
                replacement = first_ops.find(op, kind, region)
                if key is not None:
                    known[key] = replacement
            if replacement is not op:
                if log is not None:
                    log.merged(op, replacement)
                _replace(op, replacement)


class _Kind(NamedTuple):
    """The kind of an op, by its name and traits.

    Attributes:
        is_constant: It makes a constant.
        is_broadcast: It expands its operand.
        name: The name that it counts under.
        holder: The attribute that holds its sharding.
    """

    is_constant: bool
    is_broadcast: bool
    name: str
    holder: str


def _kind_of(op: Op, semantics: OpSemantics, kinds: dict[str, _Kind]) -> _Kind:
    """Return the kind of an op, and enter it where all ops of the name are of that kind."""
    traits = semantics.get_traits(op)
    name = CONSTANT if AsSdyConstant in traits else op.name
    kind = _Kind(ConstantLike in traits, Broadcast in traits, name, semantics.get_sharding_attribute(op))
    if semantics.traits_of_name(op.name) is not None:
        kinds[op.name] = kind
    return kind


class _FirstOps:
    """The first ops of those that can be merged, which have the same name, region, types, attributes and sharding.

    The attribute that holds the sharding does not count: the program's table is newer.
    """

    __slots__ = ("_distinct", "_first", "_known", "_numbers", "_table")

    def __init__(self, program: Program) -> None:
        self._table = program.shardings
        # The first op of each look, with the attribute that holds its sharding. Only where another op looks the same
        # are attributes compared, as these take longest.
        self._first: dict[Hashable, tuple[Op, str]] = {}
        # The id of such an op to the first op of each number of attributes, itself among them.
        self._distinct: dict[int, dict[int, Op]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[tuple[int, int, str], tuple[object, int]] = {}

    def find(self, op: Op, kind: _Kind, region: Region) -> Op:
        """Return the first of the ops that can be merged with an op; the op itself if it is that."""
        alike, holder = self._first.setdefault((region, kind.name, *self._look(op)), (op, kind.holder))
        if alike is op:
            return op
        others = self._distinct.get(alike.id)
        if others is None:
            others = self._distinct[alike.id] = {self._attributes(alike.attributes, holder): alike}
        return others.setdefault(self._attributes(op.attributes, kind.holder), op)

    def _look(self, op: Op) -> tuple[Hashable, ...]:
        """Return the types and the shardings of the results of an op, and its operands."""
        results = op.results
        if len(results) == 1:
            value = results[0]
            return value.type, self._table.get(value.id), *op.operands
        shardings = [self._table.get(value.id) for value in results]
        return *[value.type for value in results], *shardings, *op.operands

    def _attributes(self, attributes: Mapping[str, Attribute], left_out: str) -> int:
        """Return a number for the attributes but one; ops that share their attributes are looked at once."""
        parts = shared_parts(attributes)
        if parts is None:
            return self._number(attributes, left_out)
        key = identity(parts[0]), identity(parts[1]), left_out
        cached = self._known.get(key)
        if cached is None:
            cached = self._known[key] = parts, self._number(attributes, left_out)
        return cached[1]

    def _number(self, attributes: Mapping[str, Attribute], left_out: str) -> int:
        # No two have the same name, so that only names are compared.
        items = tuple([(name, freeze(value)) for name, value in sorted(attributes.items()) if name != left_out])
        return self._numbers.setdefault(items, len(self._numbers))


def _replace(op: Op, replacement: Op) -> None:
    for old in op.results:
        old.replace_all_uses_with(replacement.results[old.index])
    op.erase()
