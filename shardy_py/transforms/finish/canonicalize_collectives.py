"""Leave out collectives that undo each other or do nothing, and fuse those that go together.

Mirrors export_pipeline.cc::addCanonicalizerPass.
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
from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.transforms.finish.fold_constants import fold_constants
from shardy_py.transforms.finish.unify_constants import unify_constants
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
