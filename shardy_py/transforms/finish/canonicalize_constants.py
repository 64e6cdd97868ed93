"""Unite equal constants of a function, and fold ops that stand for one, as MLIR's canonicalizer always does."""

from __future__ import annotations

import re
import struct
from collections.abc import Hashable
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING

from attrs import field

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.op_names import CONSTANT
from shardy_py.ir.graph.program import Block, Op, Program
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops, names_with_trait, ops_among
from shardy_py.ir.interfaces.ops import (
    ConstantLike,
    FoldsIntoConstant,
    IsolatedFromAbove,
    OpSemantics,
    Trait,
    UnitedByMlir,
)
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.transforms.constant_copies import CopyLog


def unify_constants(program: Program, semantics: OpSemantics, log: CopyLog | None = None) -> None:
    """Move every constant to the start of its function, the last one first, and let equal ones be one.

    Constants that MLIR's canonicalizer knows are united whatever their shardings, as it does: the one found first stays
    with the sharding it has. Those of other dialects were split per use, and stay apart where they are sharded
    differently. Constants that stand at the start already, or behind one that does, keep their place. Regions that
    cannot use values from outside have their own.
    """
    if not _has_any(program, semantics):
        return
    for function in program.functions.values():
        _visit_isolated(program, function, semantics, log)


def _has_any(program: Program, semantics: OpSemantics) -> bool:
    # Constants that were split per use stay as they are: MLIR does not know that they are constants.
    names = names_with_trait(program, semantics, ConstantLike) - {CONSTANT}
    return any(ConstantLike in semantics.get_traits(op) for op in ops_among(program, names))


@define
class _Scope:
    """A scope of constants: an isolated region, in whose entry block they are collected.

    Attributes:
        entry: The block that gets them.
        log: The record of united constants.
        first_of_key: The key of equal constants to the first of them.
        placed: The ids of those that stand at the start.
    """

    entry: Block
    log: CopyLog | None
    first_of_key: dict[Hashable, Op] = field(factory=dict)
    placed: set[int] = field(factory=set)

    def add(self, op: Op, key: Hashable) -> Op:
        """Move a constant to the start, if it is the first of its kind; return the first of its kind."""
        known = self.first_of_key.setdefault(key, op)
        if known is not op:
            return known
        self.placed.add(op.id)
        stands_at_start = op.prev is None or op.prev.id in self.placed
        if op.parent is not self.entry or not stands_at_start:
            _move_to_start(op, self.entry)
        return op


def _visit_isolated(program: Program, op: Op, semantics: OpSemantics, log: CopyLog | None) -> None:
    for region in op.regions:
        if not region.blocks:
            continue
        scope = _Scope(region.blocks[0], log)
        for block in region.blocks:
            _visit(program, block, scope, semantics)


def _visit(program: Program, block: Block, scope: _Scope, semantics: OpSemantics) -> None:
    for op in list(block.ops):
        traits = semantics.get_traits(op)
        if ConstantLike in traits and op.name != CONSTANT and not op.operands and len(op.results) == 1:
            _unify(program, op, scope, _key(op, None if UnitedByMlir in traits else program.sharding(op.results[0])))
        elif IsolatedFromAbove in traits:
            _visit_isolated(program, op, semantics, scope.log)
        else:
            for region in op.regions:
                for inner_block in region.blocks:
                    _visit(program, inner_block, scope, semantics)


def _unify(program: Program, op: Op, scope: _Scope, key: Hashable) -> None:
    first = scope.add(op, key)
    if first is not op:
        if scope.log is not None:
            scope.log.merged(op, first)
        op.results[0].replace_all_uses_with(first.results[0])
        program.shardings.pop(op.results[0].id, None)
        op.erase()


def _key(op: Op, sharding: TensorSharding | None) -> Hashable:
    """Return the key of equal constants: all but the attributes of other dialects."""
    attributes = tuple((name, value) for name, value in sorted(op.attributes.items()) if "." not in name)
    return (op.name, attributes, op.results[0].type, sharding)


def _move_to_start(op: Op, entry: Block) -> None:
    if op.parent is not None:
        op.parent.remove(op)
    entry.insert_after(None, op)


_BITS = {"f16": "e", "f32": "f", "f64": "d"}
"""The formats of `struct` for element types."""
_COMPLEX = r"#complex\.number<:\S+ ([^,<>]+), ([^,<>]+)>"


def fold_constants(program: Program, semantics: OpSemantics, log: CopyLog | None = None) -> bool:
    """Replace each op with the trait `FoldsIntoConstant` by its constant, without a sharding; return whether any was.

    The constant comes to stand where the op stood; that the next round moves it to the start of its function is what
    `unify_constants` does.
    """
    names = {name for name in program.op_names if _may_fold(name, semantics)}
    folded = False
    for op in [op for op in all_ops(program) if op.name in names] if names else ():
        constant = _constant_of(program, op, semantics)
        if constant is None or op.parent is None:
            continue
        op.parent.insert_before(op, constant)
        if log is not None:
            log.replaced(op, constant)
        op.results[0].replace_all_uses_with(constant.results[0])
        program.shardings.pop(op.results[0].id, None)
        op.erase()
        folded = True
    return folded


def _may_fold(name: str, semantics: OpSemantics) -> bool:
    traits = semantics.traits_of_name(name)
    return traits is None or _have_folding(traits)


@lru_cache(maxsize=1024)
def _have_folding(traits: frozenset[Trait]) -> bool:
    return any(isinstance(trait, FoldsIntoConstant) for trait in traits)


def _constant_of(program: Program, op: Op, semantics: OpSemantics) -> Op | None:
    """Return the constant that an op folds into; None without the trait, or where the value has no text."""
    trait = next((item for item in semantics.get_traits(op) if isinstance(item, FoldsIntoConstant)), None)
    if trait is None or len(op.results) != 1:
        return None
    type_ = op.results[0].type
    value = op.attributes.get(trait.attribute)
    if not isinstance(type_, TensorType) or None in type_.shape or value is None:
        return None
    element = _element_text(value, type_.element_type)
    if element is None:
        return None
    attributes = {"value": RawAttribute(f"dense<{element}> : {type_}")}
    return Op(program, trait.constant, [], [type_], attributes)


def _element_text(value: object, element_type: str) -> str | None:
    """Return an element as MLIR writes it in a splat; None for kinds of numbers that are not folded here."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, RawAttribute):
        parts = re.match(_COMPLEX, value.text)
        return None if parts is None else f"({parts[1]}, {parts[2]})"
    if not isinstance(value, float):
        return None
    if isfinite(value):
        mantissa, _, exponent = repr(value).partition("e")
        return (mantissa if "." in mantissa else f"{mantissa}.0") + (f"e{exponent}" if exponent else "")
    if element_type == "bf16":
        return f"0x{struct.pack('>f', value)[:2].hex().upper()}"
    return f"0x{struct.pack(f'>{_BITS[element_type]}', value).hex().upper()}" if element_type in _BITS else None
