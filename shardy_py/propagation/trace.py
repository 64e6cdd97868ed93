"""Log of a solve, visit by visit, and its accepted updates.

A solve with a log notes every visit of a step (of later user priorities, those of steps that see a change) and every
synchronisation of a function result: what it saw and what it changed, as small integers. A solve with an observer
reports those that changed shardings, the accepted updates, as they happen. Factor shardings and refusals with their
reasons are computed again when asked for. Without either nothing of this exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import NamedTuple

from attrs import field

from shardy_py.ir.graph.program import Op, Value
from shardy_py.propagation.problem import NO_TIES, Problem
from shardy_py.propagation.step_outcomes import Directions, Outcome, project_step, propagate_step
from shardy_py.propagation.steps.factors import Direction, Projection, StepContext, Strategy
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define, frozen


@frozen(eq=False)
class TensorChange:
    """One tensor that an update changed.

    Args:
        position: The position among operands, then results, of the step.
        value: The value that carries the sharding (for a target of an edge, the edge).
        old: The sharding before.
        new: The sharding after.
        is_tied: Whether the value changed only because its sharding group did.
    """

    position: int
    value: Value
    old: TensorSharding | None
    new: TensorSharding
    is_tied: bool = False


@frozen(eq=False)
class Update:
    """One accepted update.

    Args:
        op: The op; the function for a function result.
        values: The carriers of the shardings of operands, then results; None for what cannot be sharded.
        rule: The rule.
        directions: The direction of every factor.
        strategy: Basic or aggressive.
        level: The number of the op-priority level.
        user_priority: The user priority.
        mesh: The mesh all shardings share.
        seen: The shardings of operands, then results, as the step saw them.
        changes: The tensors that changed, those of sharding groups behind the member that changed them.
        is_elementwise: Whether the op counts as elementwise.
        conservative: Whether sub-axes could not be introduced.
        is_function_result: Whether a returned value and a function result were synchronised.
    """

    op: Op
    values: tuple[Value | None, ...]
    rule: OpShardingRule
    directions: tuple[Direction, ...]
    strategy: Strategy
    level: int
    user_priority: int
    mesh: Mesh
    seen: tuple[TensorSharding | None, ...]
    changes: tuple[TensorChange, ...]
    is_elementwise: bool = False
    conservative: bool = False
    is_function_result: bool = False

    def projections(self) -> tuple[Projection, Projection]:
        """Return the factor shardings before and after.

        Those after also have axes that a tensor could not take in the end, as they would need a strided view.
        """
        old = project_step(self.rule, self.seen, self.mesh)
        new = deepcopy(old)
        sizes = self.rule.factor_sizes
        context = StepContext(sizes, self.directions, self.mesh, self.conservative, self.is_elementwise)
        propagate_step(new, context, self.strategy)
        return old, new


Observer = Callable[[Update], None]
DirectionsOf = Callable[[int, int, int], Directions]
"""Gets a step, the index of its group and the number of a level; returns the direction of every factor."""


class SchedulePosition(NamedTuple):
    """Position of a visit in the priority hierarchy."""

    user_priority: int
    level: int
    strategy: Strategy


class Visit(NamedTuple):
    """One visit of a step, or one synchronisation of a function result.

    Attributes:
        step: The step; for the function result number n of the problem, -1 - n.
        place: The index of the place in the log.
        group: The index of the step's group at that time; -1 for a function result.
        seen: The shardings as the step saw them.
        changed: The outcome as the tensors of the step hold it.
        outcome: The outcome as the step computed it, which sharding groups get.
    """

    step: int
    place: int
    group: int
    seen: tuple[int, ...]
    changed: Outcome
    outcome: Outcome


@define
class VisitLog:
    """All visits of one solve, in order.

    Attributes:
        places: The places that were entered, in order.
        visits: The visits.
        directions_of: How the schedule of the solve directs factors.
        user_priorities: Whether the solve went through the user priorities one by one.
    """

    places: list[SchedulePosition] = field(factory=list)
    visits: list[Visit] = field(factory=list)
    directions_of: DirectionsOf = lambda step, group, level: ()
    user_priorities: bool = True

    def __repr__(self) -> str:
        return f"<VisitLog of {len(self.visits)} visits>"


class Recorder:
    """Recorder of a solve for its observer and its log.

    Args:
        problem: The problem that is solved.
        observer: Gets the accepted updates.
        log: Where all visits are noted.
    """

    def __init__(self, problem: Problem, observer: Observer | None, log: VisitLog | None = None) -> None:
        self.problem = problem
        self.observer = observer
        self.log = VisitLog() if log is None else log
        self.keeps_all = log is not None

    def enter(self, user_priority: int, level: int, strategy: Strategy) -> None:
        """Note the position of the following visits in the hierarchy."""
        self.log.places.append(SchedulePosition(user_priority, level, strategy))

    def record(
        self,
        step: int,
        group: int,
        seen: tuple[int, ...],
        current: Sequence[int],
        changed: Outcome,
        outcome: Outcome,
    ) -> None:
        """Note a visit, before its outcome is applied.

        Args:
            step: The step, see `Visit.step`.
            group: The index of its group.
            seen: The shardings as the step saw them.
            current: Slot to sharding.
            changed: The outcome as the tensors of the step hold it.
            outcome: The outcome as the step computed it.
        """
        visit = Visit(step, len(self.log.places) - 1, group, seen, changed, outcome)
        if self.keeps_all:
            self.log.visits.append(visit)
        if outcome and self.observer is not None:
            self.observer(make_update(self.problem, self.log, visit, current))


def slots_of_visit(problem: Problem, step: int) -> tuple[int, ...]:
    """Return the slots of operands, then results, of a step or a function result (see `Visit.step`)."""
    return problem.step_slots[step] if step >= 0 else problem.function_results[-1 - step][1:]


def rule_of_visit(problem: Problem, visit: Visit) -> OpShardingRule:
    """Return the rule that a visit used."""
    if visit.step < 0:
        return problem.function_results[-1 - visit.step][0]
    rule = problem.step_rules[visit.step]
    assert rule is not None, "a step without a rule is not visited"
    return rule


def directions_of_visit(problem: Problem, log: VisitLog, visit: Visit) -> Directions:
    """Return the direction of every factor in a visit; function results take both."""
    if visit.step < 0:
        return (int(Direction.BOTH),) * rule_of_visit(problem, visit).num_factors
    return log.directions_of(visit.step, visit.group, log.places[visit.place].level)


def op_of_visit(problem: Problem, step: int) -> Op:
    """Return the op of a step; the function for a function result."""
    if step >= 0:
        return problem.step_ops[step]
    return problem.slot_values[problem.function_results[-1 - step][2]].owning_op


def changed_slots(problem: Problem, visit: Visit) -> Iterator[tuple[int, int, int, bool]]:
    """Yield position, slot, new sharding and whether a sharding group brings it, in the order in which they are set."""
    slots = slots_of_visit(problem, visit.step)
    for (position, old), (_, new) in zip(visit.changed, visit.outcome, strict=True):
        slot = slots[position]
        if slot < 0:
            continue
        yield position, slot, old, False
        is_result = visit.step < 0 and position == 1
        for member, _ in () if is_result else problem.tied.get(slot, NO_TIES).others():
            yield position, member, new, True


def make_update(problem: Problem, log: VisitLog, visit: Visit, current: Sequence[int]) -> Update:
    """Return the accepted update of a visit.

    Args:
        problem: The problem.
        log: The log that the visit stands in, or will.
        visit: The visit.
        current: Slot to sharding before the visit.
    """
    common = problem.table.common_mesh(visit.seen)
    assert common is not None, "a step without a common mesh changes nothing"
    values, slot_values = problem.table.values, problem.slot_values
    schedule_position = log.places[visit.place]
    group = problem.groups[visit.group] if visit.step >= 0 else None
    changes = []
    for position, slot, new_id, is_tied in changed_slots(problem, visit):
        new = values[new_id]
        if new is not None and not (is_tied and new_id == current[slot]):
            changes.append(TensorChange(position, slot_values[slot], values[current[slot]], new, is_tied))
    return Update(
        op_of_visit(problem, visit.step),
        tuple([slot_values[slot] if slot >= 0 else None for slot in slots_of_visit(problem, visit.step)]),
        rule_of_visit(problem, visit),
        tuple(map(Direction, directions_of_visit(problem, log, visit))),
        schedule_position.strategy,
        schedule_position.level,
        schedule_position.user_priority,
        common[1],
        tuple([values[sharding_id] for sharding_id in visit.seen]),
        tuple(changes),
        is_elementwise=group is not None and group.is_elementwise,
        conservative=group is not None and group.conservative,
        is_function_result=visit.step < 0,
    )
