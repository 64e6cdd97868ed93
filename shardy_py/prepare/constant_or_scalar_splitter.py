"""Give every user of a constant its own copy, so that the copies can be sharded differently.

Two users of one constant need not be sharded alike only because they happen to use the same constant. The same holds
for all that is computed from constants alone, and for scalars blown up to tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import ClassVar

from attrs import frozen

from shardy_py.ir.cloning import Mapping, clone_function_recursively, clone_op
from shardy_py.ir.copies import CopyLog
from shardy_py.ir.graph import Op, Program, Region, Value
from shardy_py.ir.interfaces import (
    AsSdyConstant,
    Broadcast,
    ConstantFoldable,
    ConstantLike,
    Elementwise,
    IsTerminator,
    OpSemantics,
    Pure,
    Trait,
)
from shardy_py.ir.passes import PassContext
from shardy_py.ir.symbols import (
    SymbolTable,
    functions_callees_first,
    has_body,
    original_function_name,
    set_callee,
)
from shardy_py.ir.types import is_scalar
from shardy_py.ir.uses import order_uses

CONSTANT = "sdy.constant"
NAMED_COMPUTATION = "sdy.named_computation"
SHARDING_GROUP = "sdy.sharding_group"
CALL = "func.call"


@frozen
class ConstantOrScalarSplitterPass:
    """Copy constant expressions and scalar expansions per use.

    A constant expression is a `ConstantLike` op, or a pure op that is `ConstantFoldable` or `Elementwise`, whose
    operands are all constant expressions; a generator such as iota is foldable and has no operands. A call or named
    computation counts if everything in it keeps constants constant. A scalar expansion is a `Broadcast` of a scalar.
    Scalars themselves are not copied: they have no dimension to shard.
    """

    name: ClassVar[str] = "sdy-constant-or-scalar-splitter"

    def run(self, program: Program, context: PassContext) -> None:
        """Split the constants of all functions, callees first, so that callers know what their calls are."""
        order_uses(program)
        convert_constants(program, context.semantics, context.copies)
        splitter = _Splitter(program, context.semantics, context.copies)
        for function in functions_callees_first(program):
            splitter.split_function(function)


def convert_constants(program: Program, semantics: OpSemantics, log: CopyLog | None = None) -> None:
    """Turn constants of dialects into ``sdy.constant``, which no folding merges again."""
    for op in list(program.walk()):
        if AsSdyConstant not in semantics.get_traits(op) or op.parent is None:
            continue
        constant = Op(program, CONSTANT, (), [value.type for value in op.results], copy(op.attributes))
        if log is not None:
            log.converted(op, constant)
        op.parent.insert_before(op, constant)
        for old, new in zip(op.results, constant.results, strict=True):
            old.replace_all_uses_with(new)
            if old.id in program.shardings:
                program.shardings[new.id] = program.shardings.pop(old.id)
        op.erase()


@frozen
class _Kind:
    """What the traits of an op say about it.

    Args:
        constant: It makes a constant.
        preserving: Its results are constant if its operands are.
        terminator: It ends its block.
        broadcast: It expands its operand.
    """

    constant: bool
    preserving: bool
    terminator: bool
    broadcast: bool

    @classmethod
    def of(cls, traits: frozenset[Trait]) -> _Kind:
        """Return the kind of the ops with these traits."""
        preserving = Pure in traits and (ConstantFoldable in traits or Elementwise in traits)
        return cls(ConstantLike in traits, preserving, IsTerminator in traits, Broadcast in traits)


class _Splitter:
    """Splits one function after the other; remembers which calls and named computations do more than keep constants."""

    def __init__(self, program: Program, semantics: OpSemantics, log: CopyLog | None) -> None:
        self._semantics = semantics
        self._log = log
        self._kinds: dict[frozenset[Trait], _Kind] = {}
        self._symbols = SymbolTable(program)
        self._other_computations: set[str | None] = set()
        self._other_functions: set[str] = set()
        # These are of the region at hand; dictionaries, because their order counts.
        self._function_name = ""
        self._constants: dict[Op, None] = {}
        self._expansions: dict[Op, None] = {}

    def split_function(self, function: Op) -> None:
        """Split the constants of the named computations, inner ones first, then those of the function around them."""
        self._function_name = original_function_name(function)
        for op in _inside_out(function.regions[0]):
            if op.name == NAMED_COMPUTATION:
                self._split_region(op.regions[0])
        self._split_region(function.regions[0])

    def _split_region(self, region: Region) -> None:
        self._constants, self._expansions = {}, {}
        for op in _outside_named_computations(region):
            self._visit(op)
        # Every other user has a copy by now, so the originals are unused but by each other, and by sharding groups.
        for op in (*self._expansions, *reversed(self._constants)):
            _erase_if_unused(op)

    def _visit(self, op: Op) -> None:
        if op.name == SHARDING_GROUP:
            return
        kind = self._kind_of(op)
        preserving = self._preserves_constants(op, kind)
        if kind.constant or (preserving and self._has_constant_operands(op)):
            self._constants[op] = None
            return
        if not preserving and not kind.terminator:
            self._note_other(op)
        if kind.broadcast and len(op.operands) == 1 and is_scalar(op.operands[0].type):
            self._expansions[op] = None
            return
        self._copy_operands(op)

    def _kind_of(self, op: Op) -> _Kind:
        traits = self._semantics.get_traits(op)
        found = self._kinds.get(traits)
        if found is None:
            found = self._kinds[traits] = _Kind.of(traits)
        return found

    def _preserves_constants(self, op: Op, kind: _Kind) -> bool:
        """Return whether the results are constant if the operands are."""
        if op.name == CALL:
            callee = self._symbols.callee(op)
            # Nobody knows what a declared function does; the reference takes it for constant, and aborts later.
            return has_body(callee) and original_function_name(callee) not in self._other_functions
        if op.name == NAMED_COMPUTATION:
            return op.attributes.get("name") not in self._other_computations
        return kind.preserving

    def _has_constant_operands(self, op: Op) -> bool:
        return all(value.owner in self._constants for value in op.operands)

    def _note_other(self, op: Op) -> None:
        """Remember that the function and the named computation around an op do more than keep constants constant."""
        around = op.parent_op
        while around is not None and around.name != NAMED_COMPUTATION:
            around = around.parent_op
        if around is not None:
            self._other_computations.add(around.attributes.get("name"))
        self._other_functions.add(self._function_name)

    def _copy_operands(self, op: Op) -> None:
        """Give an op its own copies of the constant expressions and scalar expansions it uses, one per operand."""
        for number, value in enumerate(op.operands):
            if (value.owner in self._constants or value.owner in self._expansions) and not is_scalar(value.type):
                op.set_operand(number, self._copy(value))
                if self._log is not None:
                    self._log.given(op, number)

    def _copy(self, root: Value) -> Value:
        """Return a copy of a value with all it is computed from; what is used twice in it is copied once."""
        mapping: Mapping = {}
        stack = [(root, False)]
        while stack:
            value, operands_done = stack.pop()
            op = value.defining_op
            if op is None or is_scalar(value.type) or value.id in mapping:
                continue
            if operands_done:
                self._copy_op(op, value, mapping)
                continue
            stack.append((value, True))
            stack += [(operand, False) for operand in reversed(op.operands)]
        return mapping[root.id]

    def _copy_op(self, op: Op, value: Value, mapping: Mapping) -> None:
        """Copy an op to just before it, and the sharding groups of the value of it that is needed."""
        copied = clone_op(op, mapping)
        if self._log is not None:
            self._log.copied(op, copied)
        if copied.name == CALL:
            function = self._symbols.callee(copied)
            set_callee(copied, self._symbols.insert(clone_function_recursively(function, self._symbols)))
        groups = [clone_op(user, mapping) for user in value.users if user.name == SHARDING_GROUP]
        for new in (copied, *groups):
            op.parent.insert_before(op, new)  # type: ignore[union-attr]


def _inside_out(region: Region) -> Iterator[Op]:
    """Iterate over all ops, each after those in its regions."""
    for block in region.blocks:
        for op in block.ops:
            for inner in op.regions:
                yield from _inside_out(inner)
            yield op


def _outside_named_computations(region: Region) -> Iterator[Op]:
    """Iterate over all ops, each before those in its regions, but not over the bodies of named computations."""
    for block in region.blocks:
        for op in block.ops:
            yield op
            if op.name != NAMED_COMPUTATION:
                for inner in op.regions:
                    yield from _outside_named_computations(inner)


def _erase_if_unused(op: Op) -> None:
    users = [user for value in op.results for user in value.users]
    if _are_sharding_groups(users):
        for user in users:
            user.erase()
        op.erase()


def _are_sharding_groups(users: Iterable[Op]) -> bool:
    return all(user.name == SHARDING_GROUP for user in users)
