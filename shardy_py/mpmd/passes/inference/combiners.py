"""Ops that combine tensors, known by their traits."""

from __future__ import annotations

from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.ops import Elementwise, Maximum, Minimum, OpSemantics, Product, Reduction, Sum
from shardy_py.plugins import Registry

_WORDS = {Sum: "add", Maximum: "max", Minimum: "min", Product: "mul"}


def combiner_of(op: Op, semantics: OpSemantics) -> str | None:
    """Return upstream's word for an op that combines its two operands, or reduces its first, or None."""
    if semantics.has_trait(op, Reduction):
        combiners = [item for item in semantics.get_reductions(op).combiners.values() if item is not None]
        return combiners[0].value if len(set(combiners)) == 1 else None
    if len(op.operands) != 2 or len(op.results) != 1 or op.regions:
        return None
    traits = semantics.get_traits(op)
    return next((word for trait, word in _WORDS.items() if trait in traits), None)


def combining_ops(program: Program, word: str, semantics: OpSemantics) -> list[str]:
    """Return the names of the ops that combine two tensors so, of the dialects that a program uses."""
    trait = next((trait for trait, other in _WORDS.items() if other == word), None)
    if trait is None or not isinstance(semantics, Registry):
        return []
    dialects = {name.partition(".")[0] for name in program.op_names}
    names = (name for name in semantics.ops if name.partition(".")[0] in dialects)
    return [name for name in names if {trait, Elementwise} <= (semantics.traits_of_name(name) or frozenset())]


def reduction_attribute(word: str) -> RawAttribute:
    """Return the attribute of a reduction over meshes.

    >>> str(reduction_attribute("add"))
    '#mpmd.reduction<add>'
    """
    return RawAttribute(f"#mpmd.reduction<{word}>")
