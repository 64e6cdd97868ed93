"""Data that a run records so that it can be explained afterwards."""

from __future__ import annotations

from attrs import evolve

from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import Solution
from shardy_py.propagation.trace import VisitLog
from shardy_py.schedule.model import Schedule
from shardy_py.sharding.combiner import NOT
from shardy_py.trace.annotations import capture_annotations
from shardy_py.trace.ops_without_rule import capture_ops_without_rule, capture_other_ops
from shardy_py.trace.original_names import GivenNames
from shardy_py.trace.trace import Trace
from shardy_py.transforms.constant_copies import CopyLog


class Recording:
    """The record of a run: made when the program and its shardings are complete, before any pass.

    Attributes:
        log: The log to which the engine writes its visits.
    """

    def __init__(self, program: Program, main: Op) -> None:
        self.names = GivenNames.of(program, main)
        self.given = dict(program.shardings)
        self.log = VisitLog()

    def finish(
        self,
        program: Program,
        solution: Solution,
        schedule: Schedule | None,
        copies: CopyLog | None = None,
        semantics: OpSemantics | None = None,
    ) -> Trace:
        """Return the trace, directly after the engine: later passes change the program.

        Args:
            program: The program.
            solution: The solution.
            schedule: The schedule that was used.
            copies: The copies of constants that the passes before made.
            semantics: The definitions of ops, for the combiners of their reductions.
        """
        problem = solution.problem
        labels = self.names.labels(program, problem, copies)
        given_names: dict[int, str] = {} if copies is None else dict(copies.given_names)
        for original, stand_in, _ in () if copies is None else copies.stand_ins():
            given_names[stand_in.id] = given_names.get(original.id, original.name)
        others, indices = capture_other_ops(program, problem, labels, given_names)
        labels = evolve(labels, others=others, indices=indices)
        annotations = capture_annotations(problem, labels, self.given)
        without_rule = capture_ops_without_rule(program, problem, labels.of_slot)
        reductions = {} if semantics is None else capture_reductions(problem, semantics)
        return Trace(
            problem, self.log, solution, schedule, labels, annotations, without_rule, reductions, _erased_steps(problem)
        )


def capture_reductions(problem: Problem, semantics: OpSemantics) -> dict[int, dict[int, str]]:
    """Return, for each step that reduces, factor to the word of its combiner."""
    reductions: dict[int, dict[int, str]] = {}
    for step, rule in enumerate(problem.step_rules):
        if rule is not None and rule.reduction_factors:
            op = problem.step_ops[step]
            # The engine erased it if nobody uses it; what is left of it tells nothing.
            is_there = op.parent is not None and len(op.operands) == len(rule.operand_mappings)
            combiners = semantics.get_reductions(op).combiners if is_there else rule.reductions
            reductions[step] = {factor: combiner.value if combiner else NOT for factor, combiner in combiners.items()}
    return reductions


def _erased_steps(problem: Problem) -> frozenset[int]:
    """Return the steps of the ops that propagation erased."""
    plan = problem.removal
    if plan is None:
        return frozenset()
    inner = [inner_op for op in plan.ops for inner_op in op.walk()]
    return frozenset([plan.step_of[inner_op.id] for inner_op in inner if inner_op.id in plan.step_of])
