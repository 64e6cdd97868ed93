"""Canonicalization and common subexpressions, by MLIR itself."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.frontends.select import frontend_of
from shardy_py.ir.graph.op_names import ALL_REDUCE
from shardy_py.ir.graph.program import Program
from shardy_py.ir.graph.shardings import load_shardings, store_shardings
from shardy_py.ir.graph.walk import ops_named
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.plugins import Registry
from shardy_py.plugins.type_definition import give_shapes
from shardy_py.sharding.combiner import parse_reduction_op
from shardy_py.transforms.finish.canonicalize_collectives import CanonicalizeCollectivesPass
from shardy_py.values import NoFields


class CanonicalizePass(NoFields):
    """Fold and simplify ops by their own patterns."""

    name: ClassVar[str] = "canonicalize"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the contents of the program; shardings go through the attributes."""
        if any(parse_reduction_op(op.attributes.get("reduction_op")) != "sum" for op in ops_named(program, ALL_REDUCE)):
            # MLIR's pattern that fuses an all-reduce and a slice knows sums only.
            CanonicalizeCollectivesPass().run(program, context)
        _run_native_pass(program, context, self.name)


class CsePass(NoFields):
    """Replace pure ops by equal ones before them."""

    name: ClassVar[str] = "cse"

    def run(self, program: Program, context: PassContext) -> None:
        """Replace the contents of the program; shardings go through the attributes."""
        _run_native_pass(program, context, self.name)


def _run_native_pass(program: Program, context: PassContext, name: str) -> None:
    store_shardings(program, context.semantics)
    frontend_of(program).run_native_pass(program, name)
    if isinstance(context.semantics, Registry):
        give_shapes(program, context.semantics)
    load_shardings(program, context.semantics)
