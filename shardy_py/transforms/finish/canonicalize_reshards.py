"""Replace a reshard of a reshard by one reshard, and erase unused ops.

Mirrors export_pipeline.cc::addCanonicalizerPass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.dead_ops import erase_dead_ops
from shardy_py.ir.graph.op_names import RESHARD
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.transforms.finish.canonicalize_constants import fold_constants, unify_constants
from shardy_py.values import NoFields


class CanonicalizeReshardsPass(NoFields):
    """Merge chains of reshards whose links have no other use.

    Upstream runs MLIR's canonicalizer with the patterns labelled ``sdy-reshard``. Its driver also unites equal
    constants, folds what stands for one and erases ops without effects that nobody uses, whatever the patterns, and so
    does this.
    """

    name: ClassVar[str] = "sdy-canonicalize-reshards"

    def run(self, program: Program, context: PassContext) -> None:
        """Simplify all functions."""
        _clean_up(program, context)
        for op in ops_named(program, RESHARD):
            inner = _only_used_here(op)
            if inner is not None:
                _merge(program, inner, op)


class KeepReshardsPass(NoFields):
    """Unite constants and erase dead ops, as `CanonicalizeReshardsPass`, but leave chains of reshards as they are.

    It stands in place of that one for estimates of what XLA does with a propagated program: XLA's partitioner brings
    what an op computes to the sharding that its result has, and only then to the one that a user wants.
    """

    name: ClassVar[str] = "keep-reshards"

    def run(self, program: Program, context: PassContext) -> None:
        """Simplify all functions."""
        _clean_up(program, context)


def _clean_up(program: Program, context: PassContext) -> None:
    """Unite and fold constants, and erase unused ops."""
    unify_constants(program, context.semantics, context.copies)
    erase_dead_ops(program, context.semantics)
    if fold_constants(program, context.semantics, context.copies):
        erase_dead_ops(program, context.semantics)
        unify_constants(program, context.semantics, context.copies)


def _only_used_here(op: Op) -> Op | None:
    """Return the reshard whose result only ``op``, another reshard, uses."""
    if op.name != RESHARD:
        return None
    inner = op.operands[0].defining_op
    if inner is None or inner.name != RESHARD or not inner.results[0].has_one_use:
        return None
    return inner


def _merge(program: Program, inner: Op, outer: Op) -> None:
    """Let a reshard start from where the one before it starts.

    Mirrors canonicalization.td::ReshardOfReshardPattern.
    """
    outer.set_operand(0, inner.operands[0])
    # The merged op is a new one to MLIR: attributes that other dialects put on the old ones are gone.
    for name in [name for name in outer.attributes if name != "sharding"]:
        del outer.attributes[name]
    program.shardings.pop(inner.results[0].id, None)
    inner.erase()
