"""Names of a program as it was given, kept while passes change the program."""

from __future__ import annotations

from collections.abc import Mapping

from shardy_py.ir.graph.program import Op, Program
from shardy_py.propagation.problem import Problem
from shardy_py.trace.aliases import native_names
from shardy_py.trace.labels import Labels, capture_labels, program_names, with_copies
from shardy_py.transforms.constant_copies import CopyLog
from shardy_py.values import frozen


@frozen(eq=False)
class GivenNames:
    """The names of the values of a program.

    Args:
        names: Value id to name.
        aliases: Other names of arguments and results of the main function, with the ids of their values.
    """

    names: Mapping[int, str]
    aliases: Mapping[str, int]

    @classmethod
    def of(cls, program: Program, main: Op) -> GivenNames:
        """Return the names of a program as its text has them now."""
        printed, aliases = native_names(program, main)
        return cls(program_names(program, main, printed), aliases)

    def labels(self, program: Program, problem: Problem, copies: CopyLog | None = None) -> Labels:
        """Return the labels of a problem by these names, while its program is as propagation saw it.

        Args:
            program: The program of the problem.
            problem: The problem.
            copies: The copies of constants that passes made since.
        """
        return capture_labels(with_copies(self.names, program, copies), problem, self.aliases)
