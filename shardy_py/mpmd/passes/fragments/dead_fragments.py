"""Fragments without duplicate and unused values.

Mirrors mpmd/transforms/common/fragment_dedup.cc and fragment_dce.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.dead_ops import is_removable
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import body_of, is_fragment, mpmd_functions, terminator_of
from shardy_py.mpmd.dialect.op_names import ASSIGN, TRANSFER, UNASSIGN
from shardy_py.mpmd.passes.region_ops import erase_dead_in, rebuild
from shardy_py.values import NoFields


class FragmentDedupPass(NoFields):
    """Replace equal operands and results by the first of them; the others stay, without uses."""

    name: ClassVar[str] = "mpmd-fragment-dedup"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit all fragments."""
        for function in mpmd_functions(program):
            for op in list(function.walk()):
                if is_fragment(op):
                    _dedup(op)


class FragmentDcePass(NoFields):
    """Erase unused results, operands, fragments and transfers."""

    name: ClassVar[str] = "mpmd-fragment-dce"

    def run(self, program: Program, context: PassContext) -> None:
        """Visit the fragments and transfers of each function from its end."""
        for function in mpmd_functions(program):
            for op in reversed(list(block_of(function).ops)):
                if op.name in (TRANSFER, ASSIGN, UNASSIGN) and not op.results[0].uses:
                    op.erase()
                elif is_fragment(op):
                    _shrink(op, context.semantics)


def _dedup(op: Op) -> None:
    arguments = body_of(op).arguments
    first: dict[int, int] = {}
    for number, value in enumerate(op.operands):
        earlier = first.setdefault(value.id, number)
        if earlier != number:
            arguments[number].replace_all_uses_with(arguments[earlier])
    results: dict[tuple[int, str], int] = {}
    for value, returned in zip(op.results, terminator_of(op).operands, strict=True):
        earlier = results.setdefault((returned.id, value.type.text), value.index)
        if earlier != value.index:
            value.replace_all_uses_with(op.results[earlier])


def _shrink(op: Op, semantics: OpSemantics) -> None:
    if is_dead(op, semantics):
        op.erase()
        return
    used_results = [value.index for value in op.results if value.uses]
    if len(used_results) < len(op.results):
        op = rebuild(op, range(len(op.operands)), used_results)
    erase_dead_in(body_of(op), semantics)
    used = [argument.index for argument in body_of(op).arguments if argument.uses]
    if len(used) < len(op.operands):
        rebuild(op, used, range(len(op.results)))


def is_dead(op: Op, semantics: OpSemantics) -> bool:
    """Return whether nothing uses a fragment, and nothing in it has an effect."""
    if any(value.uses for value in op.results):
        return False
    return all(is_removable(inner, semantics) for inner in body_of(op).ops if inner is not terminator_of(op))
