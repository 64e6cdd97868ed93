"""What has to be taken down during a run so that it can be explained afterwards."""

from __future__ import annotations

from shardy_py.explain.annotations import capture_annotations
from shardy_py.explain.bare import capture_bare_ops
from shardy_py.explain.labels import capture_labels, program_names, with_copies
from shardy_py.explain.trace import Trace
from shardy_py.frontends.select import frontend_of
from shardy_py.ir.copies import CopyLog
from shardy_py.ir.graph import Op, Program
from shardy_py.ir.schedule import Schedule
from shardy_py.propagation.solve import Solution
from shardy_py.propagation.trace import VisitLog


def native_names(program: Program) -> dict[int, str]:
    """Return the names that the text of a program gives to values, by value id; none for a built program."""
    if program.origin is None:
        return {}
    return {value: name for value, (name, _) in frontend_of(program).printed_names(program).items()}


class Recording:
    """Takes down a run: made when the program and its shardings are complete, before any pass.

    Attributes:
        log: What the engine has to write its visits to.
    """

    def __init__(self, program: Program, main: Op) -> None:
        self.names = program_names(program, main, native_names(program))
        self.given = dict(program.shardings)
        self.log = VisitLog()

    def finish(
        self, program: Program, solution: Solution, schedule: Schedule | None, copies: CopyLog | None = None
    ) -> Trace:
        """Return the trace, directly after the engine: later passes change the program.

        Args:
            program: The program.
            solution: The solution.
            schedule: The schedule that was used.
            copies: Which copies of constants the passes before made.
        """
        problem = solution.problem
        labels = capture_labels(with_copies(self.names, program, copies), problem)
        annotations = capture_annotations(problem, labels, self.given)
        bare = capture_bare_ops(program, problem, labels.of_slot)
        return Trace(problem, self.log, solution, schedule, labels, annotations, bare)
