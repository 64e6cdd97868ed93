"""Fold ops that stand for a constant, as MLIR's canonicalizer does whatever the patterns."""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.graph.walk import all_ops
from shardy_py.ir.interfaces.ops import FoldsIntoConstant, OpSemantics, Trait

if TYPE_CHECKING:
    from shardy_py.transforms.constant_copies import CopyLog

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
    """Return the constant that an op stands for; None where it has no such trait, or its value no text."""
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
