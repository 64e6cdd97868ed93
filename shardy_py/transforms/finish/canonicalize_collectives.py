"""Remove collectives that undo each other or do nothing, and fuse those that go together.

Collectives around dots are removed where the first version of collective matmuls would not recognise them.

Mirrors export_pipeline.cc::addCanonicalizerPass and remove_ag_rs_for_cmv1.cc::RemoveAllGatherReduceScatterForCMV1Pass.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.dead_ops import erase_dead_ops
from shardy_py.ir.graph.op_names import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_SLICE,
    ALL_TO_ALL,
    COLLECTIVE_PERMUTE,
    REDUCE_SCATTER,
)
from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.interfaces.ops import Contraction
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.transforms.finish.canonicalize_constants import fold_constants, unify_constants
from shardy_py.values import NoFields

_MAX_ITERATIONS = 10
"""The limit on the rounds of the reference's driver."""
COLLECTIVES = frozenset((ALL_GATHER, ALL_REDUCE, ALL_SLICE, ALL_TO_ALL, COLLECTIVE_PERMUTE, REDUCE_SCATTER))
"""The ops that there are patterns for."""


class CanonicalizeCollectivesPass(NoFields):
    """Simplify collectives: an all-slice of an all-reduce, for example, is a reduce-scatter.

    Upstream runs MLIR's canonicalizer with the patterns labelled ``sdy-collective``. Its driver also unites equal
    constants, folds what stands for one and erases ops without effects that nobody uses, whatever the patterns, and so
    does this.
    """

    name: ClassVar[str] = "sdy-canonicalize-collectives"

    def run(self, program: Program, context: PassContext) -> None:
        """Simplify all functions."""
        unify_constants(program, context.semantics, context.copies)
        erase_dead_ops(program, context.semantics)
        if fold_constants(program, context.semantics, context.copies):
            erase_dead_ops(program, context.semantics)
            unify_constants(program, context.semantics, context.copies)
        if COLLECTIVES.isdisjoint(program.op_names):
            return
        from shardy_py.transforms.finish.collectives.patterns import PATTERNS
        from shardy_py.transforms.finish.collectives.rewriter import Rewriter

        rewriter = Rewriter(program, context.semantics, PATTERNS)
        for _ in range(_MAX_ITERATIONS):
            if not rewriter.run():
                return
            erase_dead_ops(program, context.semantics)


class RemoveAllGatherReduceScatterForCMV1Pass(NoFields):
    """Remove all-gathers before dots, and reduce-scatters after dots that have no such all-gather."""

    name: ClassVar[str] = "sdy-remove-all-gather-reduce-scatter-for-cmv1"

    def run(self, program: Program, context: PassContext) -> None:
        """Remove the collectives around all dots."""
        removed: list[Op] = []
        for op in program.walk():
            if context.semantics.has_trait(op, Contraction):
                removed += _gathers_before(op) or _scatter_after(program, op)
        for op in removed:
            program.shardings.pop(op.results[0].id, None)
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()


def _gathers_before(dot: Op) -> list[Op]:
    """Return the all-gathers of a dot's operands that nothing else uses."""
    producers = [value.defining_op for value in dot.operands if value.has_one_use]
    return [op for op in producers if op is not None and op.name == ALL_GATHER]


def _scatter_after(program: Program, dot: Op) -> list[Op]:
    """Return the reduce-scatter that is the only user of a dot, whose sharding goes to the dot.

    A dot with unreduced axes keeps it.
    """
    (result,) = dot.results
    scatter = _only_user(result)
    sharding = program.sharding(result)
    if scatter is None or scatter.name != REDUCE_SCATTER or (sharding is not None and sharding.unreduced_axes):
        return []
    scattered = program.sharding(scatter.results[0])
    if scattered is not None:
        program.shardings[result.id] = scattered
    return [scatter]


def _only_user(value: Value) -> Op | None:
    return value.uses[0][0] if value.has_one_use else None
