"""Give every user of a constant its own copy, so that the copies can be sharded differently.

Two users of one constant need not be sharded alike only because they happen to use the same constant. The same holds
for all that is computed from constants alone, and for scalars blown up to tensors.

Mirrors constant_or_scalar_splitter.cc::ConstantOrScalarSplitterPass.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from shardy_py.ir.graph.op_names import CALL, CONSTANT, NAMED_COMPUTATION, SHARDING_GROUP
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.rewriting import ValueMapping, clone_function_recursively, clone_op
from shardy_py.ir.graph.symbols import (
    SymbolTable,
    functions_callees_first,
    has_body,
    original_function_name,
    set_callee,
)
from shardy_py.ir.graph.types import is_scalar
from shardy_py.ir.graph.walk import all_in_region, names_with_trait, ops_among, order_uses
from shardy_py.ir.interfaces.ops import (
    AsSdyConstant,
    Broadcast,
    ConstantFoldable,
    ConstantLike,
    Elementwise,
    IsTerminator,
    OpSemantics,
    Pure,
    Trait,
    UnitedByMlir,
)
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.values import NoFields

if TYPE_CHECKING:
    from shardy_py.transforms.constant_copies import CopyLog

_SPECIAL = frozenset((CALL, NAMED_COMPUTATION, SHARDING_GROUP))


class ConstantOrScalarSplitterPass(NoFields):
    """Copy constant expressions and scalar expansions per use.

    A constant expression is a `ConstantLike` op, or a pure op that is `ConstantFoldable` or `Elementwise`, whose
    operands are all constant expressions; a generator such as iota is foldable and has no operands. A call or named
    computation counts if everything in it keeps constants constant. A scalar expansion is a `Broadcast` of a scalar.
    Scalars themselves are not copied: they have no dimension to shard.
    """

    name: ClassVar[str] = "sdy-constant-or-scalar-splitter"

    def run(self, program: Program, context: PassContext) -> None:
        """Split the constants of all functions, callees first, so that callers know which calls are constant."""
        order_uses(program)
        convert_constants(program, context.semantics, context.copies)
        splitter = _Splitter(program, context.semantics, context.copies)
        for function in functions_callees_first(program):
            splitter.split_function(function)


def convert_constants(program: Program, semantics: OpSemantics, log: CopyLog | None = None) -> None:
    """Turn constants of dialects into ``sdy.constant``, which no folding merges again."""
    program.op_names.add(CONSTANT)
    names = names_with_trait(program, semantics, AsSdyConstant)
    always = {name for name in names if AsSdyConstant in (semantics.traits_of_name(name) or ())}
    for op in ops_among(program, names):
        if op.parent is None or not (op.name in always or AsSdyConstant in semantics.get_traits(op)):
            continue
        if log is not None:
            log.converted(op)
        op.rename(CONSTANT)


class _Kind(NamedTuple):
    """The kind of an op, by its name and traits.

    Attributes:
        is_constant: It makes a constant.
        is_preserving: Its results are constant if its operands are.
        is_terminator: It ends its block.
        is_broadcast: It expands its operand.
        is_special: What it does to constants is not said by its traits.
    """

    is_constant: bool
    is_preserving: bool
    is_terminator: bool
    is_broadcast: bool
    is_special: bool


@lru_cache(maxsize=1024)
def _make_kind(traits: frozenset[Trait], is_special: bool) -> _Kind:
    """Return the kind of the ops with these traits; sets keep their hash, and there are few different ones."""
    is_preserving = Pure in traits and (ConstantFoldable in traits or Elementwise in traits)
    is_constant = ConstantLike in traits and UnitedByMlir not in traits
    return _Kind(is_constant, is_preserving, IsTerminator in traits, Broadcast in traits, is_special)


class _Splitter:
    """Splits one function after the other; remembers which calls and named computations do more than keep constants."""

    __slots__ = ("_kinds", "_log", "_other_computations", "_other_functions", "_program", "_semantics", "_symbols")

    def __init__(self, program: Program, semantics: OpSemantics, log: CopyLog | None) -> None:
        self._program = program
        self._semantics = semantics
        self._log = log
        self._kinds: dict[str, _Kind] = {}
        self._symbols = SymbolTable(program)
        self._other_computations: set[str | None] = set()
        self._other_functions: set[str] = set()

    def split_function(self, function: Op) -> None:
        """Split the constants of the named computations, inner ones first, then those of the function around them."""
        name = original_function_name(function)
        region = function.regions[0]
        if NAMED_COMPUTATION in self._program.op_names:
            for op in _inside_out(region):
                if op.name == NAMED_COMPUTATION:
                    self._split_region(op.regions[0], name, op)
        self._split_region(region, name, None)

    def _split_region(self, region: Region, function_name: str, computation: Op | None) -> None:
        """Split the constants of a function, or of a named computation in it."""
        constants: dict[Any, None] = {}
        expansions: dict[Any, None] = {}
        copied: set[Any] = set()
        kinds = self._kinds
        for op in _outside_named_computations(self._program, region):
            try:
                kind = kinds[op.name]
            except KeyError:
                kind = self._kind_of(op)
            is_constant, preserving, is_terminator, is_broadcast, is_special = kind
            if is_special:
                if op.name == SHARDING_GROUP:
                    continue
                preserving = self._preserves_constants(op)
            operands = op.operands
            # The first operand alone tells for most ops.
            if is_constant or (
                preserving and (not operands or operands[0].owner in constants) and _are_all_in(operands, constants)
            ):
                constants[op] = None
                copied.add(op)
                continue
            if not preserving and not is_terminator:
                # The function and the named computation around the op do more than keep constants constant.
                self._other_functions.add(function_name)
                if computation is not None:
                    self._other_computations.add(computation.attributes.get("name"))
            if is_broadcast and len(operands) == 1 and is_scalar(operands[0].type):
                expansions[op] = None
                copied.add(op)
                continue
            # Most ops use none of them, and are looked at without numbers.
            for value in operands:
                if value.owner in copied:
                    self._clone_per_use(op, copied)
                    break
        # Every other user has its own by now, so that what is left is used by each other, and by sharding groups.
        for original in (*expansions, *reversed(constants)):
            _erase_if_unused(original)

    def _kind_of(self, op: Op) -> _Kind:
        traits, is_special = self._semantics.traits_of_name(op.name), op.name in _SPECIAL
        if traits is None:
            return _make_kind(self._semantics.get_traits(op), is_special)
        kind = self._kinds[op.name] = _make_kind(traits, is_special)
        return kind

    def _preserves_constants(self, op: Op) -> bool:
        """Return whether the results of a call, or a named computation, are constant if the operands are.

        Mirrors constant_or_scalar_splitter.cc::isConstantPreserving.
        """
        if op.name == CALL:
            callee = self._symbols.callee(op)
            # Nobody knows what a declared function does; the reference takes it for constant, and aborts later.
            return has_body(callee) and original_function_name(callee) not in self._other_functions
        return op.attributes.get("name") not in self._other_computations

    def _clone_per_use(self, op: Op, copied: Container[Any]) -> None:
        """Give an op its own copies of all that it uses of some ops, but for scalars."""
        for number, value in enumerate(op.operands):
            if value.owner in copied and not is_scalar(value.type):
                self._give_own(op, number, value)

    def _give_own(self, op: Op, number: int, value: Value) -> None:
        """Give an op its own copy of a constant expression or scalar expansion that it uses.

        What nobody else uses it keeps: the copy would stand where the original does, which would be erased.
        """
        if self._log is None:
            expression = _find_single_use(value)
            if expression is not None:
                for part in expression:
                    _renew_uses_of_scalars(part)
                return
        op.set_operand(number, self._copy(value))
        if self._log is not None:
            self._log.given(op, number)

    def _copy(self, root: Value) -> Value:
        """Return a copy of a value with all ops it is computed from; an op that is used twice is copied once.

        Mirrors constant_or_scalar_splitter.cc::cloneSubComputation.
        """
        mapping: ValueMapping = {}
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

    def _copy_op(self, op: Op, value: Value, mapping: ValueMapping) -> None:
        """Copy an op to just before it, and the sharding groups of the value of it that is needed.

        Mirrors constant_or_scalar_splitter.cc::cloneShardingGroupUsers.
        """
        copied = clone_op(op, mapping)
        if self._log is not None:
            self._log.copied(op, copied)
        if copied.name == CALL:
            function = self._symbols.callee(copied)
            set_callee(copied, self._symbols.insert(clone_function_recursively(function, self._symbols)))
        op.parent.insert_before(op, copied)  # type: ignore[union-attr]
        if SHARDING_GROUP in self._program.op_names:
            for user in value.users:
                if user.name == SHARDING_GROUP:
                    op.parent.insert_before(op, clone_op(user, mapping))  # type: ignore[union-attr]


def _are_all_in(values: Iterable[Value], owners: Container[Any]) -> bool:
    # A loop, because `all` would make a generator for every op.
    for value in values:  # noqa: SIM110
        if value.owner not in owners:
            return False
    return True


def _find_single_use(root: Value) -> list[Op] | None:
    """Return the ops a value is computed from, operands first, if each is a simple one with a single use; else None."""
    owner = root.owner
    if isinstance(owner, Op) and not owner.operands:
        return [] if _is_simple(owner) and len(root.uses) == 1 else None
    single: list[Op] = []
    stack = [root]
    while stack:
        value = stack.pop()
        owner = value.owner
        if isinstance(owner, Block) or is_scalar(value.type):
            continue
        if len(value.uses) != 1 or not _is_simple(owner):
            return None
        single.append(owner)
        stack += owner.operands
    single.reverse()
    return single


def _is_simple(op: Op) -> bool:
    return len(op.results) == 1 and not op.regions and op.name != CALL


def _renew_uses_of_scalars(op: Op) -> None:
    """Put the uses of scalars, which are never copied, to the end, where those of a copy of the op would be."""
    for number, value in enumerate(op.operands):
        if len(value.uses) > 1:
            value.renew_use(op, number)


def _inside_out(region: Region) -> Iterator[Op]:
    """Iterate over all ops, each after those in its regions."""
    for block in region.blocks:
        for op in block.ops:
            for inner in op.regions:
                yield from _inside_out(inner)
            yield op


def _outside_named_computations(program: Program, region: Region) -> Sequence[Op]:
    """Return all ops, each before those in its regions, but not the bodies of named computations."""
    if NAMED_COMPUTATION not in program.op_names:
        return all_in_region(region)
    return list(_outside_some(region))


def _outside_some(region: Region) -> Iterator[Op]:
    for block in region.blocks:
        for op in block.ops:
            yield op
            if op.name != NAMED_COMPUTATION:
                for inner in op.regions:
                    yield from _outside_some(inner)


def _erase_if_unused(op: Op) -> None:
    """Erase an op that at most sharding groups use, and them with it."""
    for value in op.results:
        for user, _ in value.uses:
            if user.name != SHARDING_GROUP:
                return
    for user in [user for value in op.results for user in value.users]:
        user.erase()
    op.erase()
