"""Propagation over a program: compile, solve, and put the result back into the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from attrs import evolve

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.graphs import main_function
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.rule_attributes import drop_rules
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.propagation.compile import check_types, compile_checked
from shardy_py.propagation.dead_ops import erase_ops
from shardy_py.propagation.initial_shardings import sync_sharding_groups
from shardy_py.propagation.problem import Problem
from shardy_py.propagation.solve import Solution, Strategies, solve
from shardy_py.propagation.step_outcomes import SHARED, StepOutcomes
from shardy_py.propagation.steps.factors import Strategy
from shardy_py.schedule.builtin import DEFAULT
from shardy_py.schedule.model import Schedule
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.propagation.trace import Observer, VisitLog

StrategyName = Literal["basic", "aggressive", "basic-then-aggressive"]

STRATEGIES: dict[StrategyName, Strategies] = {
    "basic": (Strategy.BASIC,),
    "aggressive": (Strategy.AGGRESSIVE,),
    "basic-then-aggressive": (Strategy.BASIC, Strategy.AGGRESSIVE),
}


@frozen
class PropagationOptions:
    """Options of propagation.

    Args:
        schedule: The schedule; None for every op at once.
        strategy: The factor propagation of each level.
        user_priorities: Whether priorities on dimension shardings count.
        conservative: Whether ops may not introduce sub-axes or uneven shards.
        keep_sharding_rules: Whether rules stay on the ops as ``sdy.sharding_rule``.
    """

    schedule: Schedule | None = DEFAULT
    strategy: StrategyName = "aggressive"
    user_priorities: bool = True
    conservative: bool = False
    keep_sharding_rules: bool = False


DEFAULT_OPTIONS = PropagationOptions()
Snapshot = Callable[[int], None]
"""Receiver of a user priority that is done, while the program shows the shardings reached with it."""

StageCallback = Callable[[str], None]
"""Receiver of the name of each stage as it starts."""


def propagate_program(
    program: Program,
    semantics: OpSemantics,
    options: PropagationOptions = DEFAULT_OPTIONS,
    *,
    warnings: list[Diagnostic] | None = None,
    observer: Observer | None = None,
    snapshot: Snapshot | None = None,
    log: VisitLog | None = None,
    on_stage: StageCallback | None = None,
    check_arguments: bool = False,
) -> Solution:
    """Propagate the shardings of a program's table, in place.

    Mirrors basic_propagation.cc::runOnOperation.

    Ops without uses are erased, as the reference does.

    Args:
        program: The program.
        semantics: The traits, rules and data flow of the ops.
        options: How to propagate.
        warnings: Receives the warnings.
        observer: Gets every accepted update as it happens.
        snapshot: Called after every user priority but the last.
        log: Gets every visit.
        on_stage: Called as ``compile`` and ``solve`` start.
        check_arguments: See `make_problem`.

    Raises:
        UnsupportedError: dynamic shapes, tuples, or several functions without one named ``main``.
    """
    stage = on_stage or _no_display
    stage("compile")
    problem = make_problem(
        program,
        semantics,
        conservative=options.conservative,
        warnings=warnings,
        check_arguments=check_arguments,
        # What a record refers to is its own.
        outcomes=SHARED.of(program.meshes) if observer is None and log is None else None,
    )

    def after_priority(priority: int, shardings: Sequence[int]) -> None:
        assert snapshot is not None, "only called where there is a snapshot to take"
        with _shown(program, Solution(problem, list(shardings))):
            snapshot(priority)

    stage("solve")
    solution = solve(
        problem,
        schedule=options.schedule,
        strategies=STRATEGIES[options.strategy],
        user_priorities=options.user_priorities,
        observer=observer,
        after_priority=after_priority if snapshot is not None else None,
        log=log,
    )
    apply_solution(program, solution)
    keep_or_drop_rules(program, problem, keep=options.keep_sharding_rules)
    if problem.removal is not None:
        erase_ops(problem.removal)
    return solution


def _no_display(stage: str) -> None:
    """Show nothing."""


def make_problem(
    program: Program,
    semantics: OpSemantics,
    *,
    conservative: bool = False,
    warnings: list[Diagnostic] | None = None,
    check_arguments: bool = False,
    outcomes: StepOutcomes | None = None,
) -> Problem:
    """Return the problem of a program that was prepared; members of sharding groups get their common sharding.

    Args:
        program: The program.
        semantics: The traits, rules and data flow of the ops.
        conservative: Whether ops may not introduce sub-axes or uneven shards.
        warnings: Receives the warnings.
        check_arguments: Whether arguments of blocks, too, must have a type that can be sharded; the reference leaves
            the others without a sharding.
        outcomes: Outcomes of steps under the meshes of the program, as far as they are known.

    Raises:
        UnsupportedError: dynamic shapes, tuples, or several functions without one named ``main``.
    """
    check_types(program, arguments=check_arguments)
    main_function(program)
    if semantics.options.conservative != conservative:
        semantics = semantics.with_options(evolve(semantics.options, conservative=conservative))
    sync_sharding_groups(program, semantics, warnings if warnings is not None else [])
    return compile_checked(program, semantics, conservative=conservative, outcomes=outcomes)


@contextmanager
def _shown(program: Program, solution: Solution) -> Iterator[None]:
    """Apply a solution for the time of a snapshot, as the reference: all rules on the ops, unused ops erased."""
    before = dict(program.shardings)
    apply_solution(program, solution)
    keep_or_drop_rules(program, solution.problem, keep=True)
    if solution.problem.removal is not None:
        erase_ops(solution.problem.removal)
    yield
    program.shardings.clear()
    program.shardings.update(before)


def apply_solution(program: Program, solution: Solution) -> None:
    """Put the shardings of a solution into the program's table."""
    problem = solution.problem
    pairs = zip(problem.slot_values, map(problem.table.values.__getitem__, solution.shardings), strict=False)
    program.shardings.update({value.id: sharding for value, sharding in pairs if sharding is not None})


def keep_or_drop_rules(program: Program, problem: Problem, *, keep: bool) -> None:
    """Leave the rules of all ops on them, or remove those that no user gave."""
    if not keep:
        drop_rules(program)
        return
    is_own = _groups_of_ops(problem)
    # The steps of a group have rules for as many operands and results.
    for group, members in enumerate(problem.group_steps):
        rule = problem.step_rules[members[0]] if members else None
        is_own[group] = is_own[group] and rule is not None and rule.may_stand_on_op
    steps = zip(problem.step_ops, problem.step_groups, problem.step_rules, strict=True)
    program.rules.update({op.id: rule for op, group, rule in steps if rule is not None and is_own[group]})


def op_rules(problem: Problem) -> list[tuple[Op, OpShardingRule]]:
    """Return the ops with a rule, without edges and barriers, and their rules."""
    is_own = _groups_of_ops(problem)
    steps = zip(problem.step_ops, problem.step_groups, problem.step_rules, strict=True)
    return [(op, rule) for op, group, rule in steps if rule is not None and is_own[group]]


def _groups_of_ops(problem: Problem) -> list[bool]:
    """Return for each step group whether its steps are those of ops, and not of edges and barriers."""
    return [group.fixed is None and not group.name.endswith("data_flow_edge") for group in problem.groups]
