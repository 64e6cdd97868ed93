"""Facts of a program that passes on communication ask for once per group of axes, until they change the program."""

from __future__ import annotations

from attrs import evolve

from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.local import LocalOps
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.communication.explicit_steps import with_extended_rules
from shardy_py.local.communication.routes import Routes
from shardy_py.local.communication.run_counts import RunCounts
from shardy_py.local.local_ops import find_local_ops
from shardy_py.values import frozen


@frozen(eq=False)
class ProgramFacts:
    """Facts of a program, as long as it stays as it is.

    Args:
        program: The program.
        semantics: What is known about ops, with the rules that passes on communication ask for.
        ops: The ops for communication.
        routes: The routes of values.
        counts: How often blocks run.
    """

    program: Program
    semantics: OpSemantics
    ops: LocalOps
    routes: Routes
    counts: RunCounts

    @classmethod
    def of(cls, program: Program, context: PassContext) -> ProgramFacts:
        """Return the facts of a program as it is now."""
        semantics = with_extended_rules(context.semantics)
        routes = Routes(program, semantics, is_fixed=True)
        return cls(program, semantics, find_local_ops(program, semantics), routes, RunCounts(semantics))

    def after_change(self) -> ProgramFacts:
        """Return the facts of the program after its shardings and collectives changed."""
        routes = Routes(self.program, self.semantics, is_fixed=True, one_object=self.routes.one_object)
        return evolve(self, routes=routes)
