"""Priority hierarchy as nested loops: user priorities > levels of the schedule > strategies > fixpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from shardy_py.propagation.compile import has_multi_use
from shardy_py.propagation.dead_ops import Removal
from shardy_py.propagation.problem import NO_RULE, NO_TIES, Problem
from shardy_py.propagation.sharding_table import NO_SHARDING
from shardy_py.propagation.step_classes import StepClasses
from shardy_py.propagation.step_outcomes import NOTHING, Directions, Outcome
from shardy_py.propagation.steps.factors import Direction, Strategy
from shardy_py.propagation.user_priorities import PriorityRound, start_priorities
from shardy_py.propagation.worklist import LevelStart, Worklist
from shardy_py.schedule.builtin import Vector
from shardy_py.schedule.model import Schedule
from shardy_py.support.identity import identity
from shardy_py.values import define

if TYPE_CHECKING:
    from shardy_py.propagation.trace import Observer, Recorder, VisitLog

Strategies = tuple[Strategy, ...]
AGGRESSIVE: Strategies = (Strategy.AGGRESSIVE,)
AfterPriority = Callable[[int, Sequence[int]], None]
"""Receiver of a user priority that is done, but is not the last, and of the sharding id of every slot."""


@define(frozen=True)
class Solution:
    """The sharding id of every slot after propagation."""

    problem: Problem
    shardings: list[int]

    def __repr__(self) -> str:
        values = self.problem.table.values
        count = len(self.problem.slot_values)
        sharded = sum(values[number] is not None for number in self.shardings[:count])
        return f"<Solution: {sharded} of {count} tensors have a sharding>"


def solve(
    problem: Problem,
    *,
    schedule: Schedule | None,
    strategies: Strategies = AGGRESSIVE,
    user_priorities: bool = True,
    observer: Observer | None = None,
    after_priority: AfterPriority | None = None,
    log: VisitLog | None = None,
) -> Solution:
    """Propagate to the fixpoint.

    Mirrors user_priority_propagation.cc::propagate.

    Args:
        problem: The compiled program; it is not changed and may be solved again.
        schedule: The schedule; None for every op in both directions at once.
        strategies: The factor propagation strategies, in the order in which each level runs them.
        user_priorities: Whether priorities on dimension shardings count; if not they are carried along.
        observer: Gets every accepted update as it happens.
        after_priority: Called after every user priority but the last.
        log: Receives every visit, also those that change nothing.
    """
    recorder = _make_recorder(problem, observer, log)
    solver = _Solver(problem, schedule, strategies, recorder)
    if recorder is not None:
        recorder.log.directions_of = solver.classes.directions_of
        recorder.log.user_priorities = user_priorities
    if not user_priorities:
        solver.run_levels()
        return Solution(problem, solver.current)
    rounds = start_priorities(problem, solver.current)
    if rounds:
        solver.keep_level_starts()
    solver.run_levels()
    done = 0
    for priority_round in rounds:
        if after_priority is not None:
            after_priority(done, solver.current)
        apply_round(problem, solver.current, priority_round)
        solver.touch_users(slot for slot, _ in priority_round.updates)
        solver.run_levels(priority_round.priority)
        done = priority_round.priority
    return Solution(problem, solver.current)


def _make_recorder(problem: Problem, observer: Observer | None, log: VisitLog | None) -> Recorder | None:
    """Return the recorder of a solve with an observer or a log, else None."""
    if observer is None and log is None:
        return None
    from shardy_py.propagation.trace import Recorder

    return Recorder(problem, observer, log)


def apply_round(problem: Problem, current: list[int], priority_round: PriorityRound) -> None:
    """Reveal the dimension shardings of one user priority, in place."""
    for slot, update in priority_round.updates:
        sharding = problem.table.values[current[slot]]
        if sharding is not None:
            current[slot] = problem.table.intern(update(sharding))


class _Solver:
    """State of one solve.

    The outcome of a visit depends on the directions and the shardings that the step sees only. So a level need not
    visit a step to which it gives no other directions than the level before, unless one of its shardings changed since
    its last visit. All other visits come in the order in which they would if each level began with a visit of every
    step, as in the reference. The levels of a later user priority need not visit a step whose shardings are as they
    were when the level began for the priority before.
    """

    __slots__ = (
        "_active",
        "_again",
        "_alive",
        "_coupled",
        "_directions",
        "_function_results",
        "_level_starts",
        "_memos",
        "_returned",
        "_touched",
        "classes",
        "current",
        "problem",
        "recorder",
        "removal",
        "settles",
        "strategies",
    )

    def __init__(
        self, problem: Problem, schedule: Schedule | None, strategies: Strategies, recorder: Recorder | None
    ) -> None:
        self.problem = problem
        self.recorder = recorder
        self.strategies = strategies
        self.current = list(problem.initial)
        self.classes = StepClasses(problem, schedule)
        self.settles = schedule is not None and schedule.settles
        self.removal = Removal(problem.removal) if problem.removal else None
        self._coupled = frozenset((*problem.siblings, *problem.tied))
        self._returned = [slot for _, slot, _ in problem.function_results]
        self._function_results = [slot for _, _, slot in problem.function_results]
        self._alive = bytearray(b"\x01") * problem.num_steps
        self._active = bytearray(problem.num_steps)
        self._again: list[int] = []
        self._directions: list[Directions] = []
        self._memos: list[dict[tuple[int, ...], Outcome]] = []
        self._level_starts: dict[tuple[int, Strategy], LevelStart] | None = None
        self._touched: list[int] = []

    def keep_level_starts(self) -> None:
        """Keep what each level began with, so that the next user priority visits only what changed since then."""
        self._level_starts = {}

    def touch_users(self, slots: Iterable[int]) -> None:
        """Note the steps of slots that changed between two user priorities."""
        if self._level_starts is not None:
            self._again.extend(step for slot in slots for step in self.problem.dependents.steps_with(slot))

    def run_levels(self, user_priority: int = 0) -> None:
        """Run every level, each with every strategy, to its fixpoint; a schedule that settles repeats the last one.

        Mirrors op_priority_propagation.cc::propagate.
        """
        last = self.classes.num_levels - 1
        for level in range(last + 1):
            self._run_level(user_priority, level)
        before: list[int] = []
        while self.settles and self.current != before:
            before = list(self.current)
            self._run_level(user_priority, last)

    def _run_level(self, user_priority: int, level: int) -> None:
        """Run one level with every strategy.

        Mirrors aggressive_propagation.cc::propagate.
        """
        for strategy in self.strategies:
            if self.recorder is not None:
                self.recorder.enter(user_priority, level, strategy)
            self._sync_function_results(strategy)
            self._fixpoint(self._begin(level, strategy))
            self._sync_function_results(strategy)

    def _begin(self, level: int, strategy: Strategy) -> Worklist:
        """Take up the directions of a level; return the worklist with all steps that may have something to do."""
        starts = self._level_starts
        if starts is not None:
            self._touched.extend(self._again)
            if (level, strategy) in starts:
                return self._begin_again(level, strategy, starts[level, strategy])
        classes, num_steps = self.classes, self.problem.num_steps
        is_first = level == 0 or len(self.strategies) > 1
        if is_first:
            self._active = bytearray(num_steps)
            self._directions = [()] * len(classes.groups)
            self._memos = [NOTHING] * len(classes.groups)
        waiting, active = bytearray(num_steps), self._active
        for profile, members in enumerate(classes.by_profile):
            vector = classes.vectors[profile][level]
            if not is_first and vector == classes.vectors[profile][level - 1]:
                continue
            for step_class in members:
                for step in self._direct(step_class, vector, strategy):
                    active[step] = waiting[step] = 1
        for step in self._again:
            waiting[step] = active[step]
        self._again.clear()
        if self.removal is not None or (self.recorder is not None and self.recorder.keeps_all):
            # An op may be erased although its step has nothing to do, and a log has every visit of the first priority.
            self._active, waiting = bytearray(self._alive), bytearray(self._alive)
        if starts is not None and self.removal is None:
            start = LevelStart(
                self._active, list(self._directions), list(self._memos), list(self.current), len(self._touched)
            )
            starts[level, strategy] = start
        return Worklist(waiting, level, strategy)

    def _begin_again(self, level: int, strategy: Strategy, start: LevelStart) -> Worklist:
        """Take up a level of a later user priority; return the worklist with the steps that see a change since."""
        problem, current, active = self.problem, self.current, start.active
        self._active, self._directions, self._memos = active, start.directions, start.memos
        waiting = bytearray(problem.num_steps)
        touched = dict.fromkeys(self._touched[start.num_touched :])
        slots = dict.fromkeys(slot for step in touched for slot in problem.step_slots[step] if slot >= 0)
        for step in touched:
            waiting[step] = active[step]
        for slot in slots:
            if current[slot] != start.current[slot]:
                for step in problem.dependents.steps_with(slot):
                    waiting[step] = active[step]
        self._again.clear()
        start.current, start.num_touched = list(current), len(self._touched)
        return Worklist(waiting, level, strategy)

    def _direct(self, step_class: int, vector: Vector, strategy: Strategy) -> Sequence[int]:
        """Give a class of steps its directions; return its steps, or none where nothing changes or may go anywhere."""
        index = self.classes.groups[step_class]
        directions = self.classes.directions(index, vector)
        if directions == self._directions[step_class]:
            return ()
        self._directions[step_class] = directions
        if not any(directions):
            return ()
        group = self.problem.groups[index]
        self._memos[step_class] = self.problem.outcomes.memo(
            group.rule,
            directions,
            strategy,
            is_elementwise=group.is_elementwise,
            conservative=group.conservative,
        )
        return self.classes.members[step_class]

    def _sync_function_results(self, strategy: Strategy) -> None:
        """Propagate between the values the main function returns and its results.

        Mirrors basic_propagation.cc::propagateFuncResults.
        """
        problem, current, again = self.problem, self.current, self._again
        operands, results = self._returned, self._function_results
        if self.recorder is None and [current[slot] for slot in operands] == [current[slot] for slot in results]:
            return
        memos: dict[int, dict[tuple[int, ...], Outcome]] = {}
        for number, (rule, operand, result) in enumerate(problem.function_results):
            ids = (current[operand], current[result])
            if ids[0] == ids[1] and self.recorder is None:
                continue
            memo = memos.get(identity(rule))
            if memo is None:
                directions = (int(Direction.BOTH),) * rule.num_factors
                rule_id = problem.outcomes.intern_rule(rule)
                memo = memos[identity(rule)] = problem.outcomes.memo(rule_id, directions, strategy)
            outcome = memo[ids]
            if self.recorder is not None:
                self.recorder.record(-1 - number, -1, ids, current, outcome, outcome)
            for position, new in outcome:
                if position == 1:
                    current[result] = new
                    continue
                for slot in (operand, *(member for member, _ in problem.tied.get(operand, NO_TIES).others())):
                    again.extend(self._assign(slot, new))
                    again.extend(problem.dependents.all_of(slot))

    def _assign(self, slot: int, sharding_id: int) -> list[int]:
        """Set a slot, and open the other results of its op that have no sharding: one attribute holds them all.

        Returns:
            The steps that see a change of the other results; they are not put back on the worklist.
        """
        current = self.current
        was_missing = current[slot] == NO_SHARDING
        current[slot] = sharding_id
        seen_by: list[int] = []
        for other, rank in self.problem.siblings.get(slot, ()) if was_missing else ():
            if current[other] == NO_SHARDING:
                current[other] = self.problem.table.fully_open_like(sharding_id, rank)
                seen_by.extend(self.problem.dependents.all_of(other))
        return seen_by

    def _fixpoint(self, work: Worklist) -> None:
        """Visit steps, last put back first, until nothing changes.

        Mirrors basic_propagation.cc::propagate.
        """
        # One long loop over local names: it runs once per visit, and calls would be half of its time.
        problem, current, active, again = self.problem, self.current, self._active, self._again
        step_slots, transforms = problem.step_slots, problem.transforms
        dependents_of, not_requeued, coupled = (
            problem.dependents.of,
            problem.dependents.not_requeued,
            self._coupled,
        )
        memos, class_of = self._memos, self.classes.of_step
        removal, recorder = self.removal, self.recorder
        stack, waiting, find = work.stack, work.waiting, work.waiting.find
        cursor = 0
        while True:
            if stack:
                step = stack.pop()
                if not waiting[step]:
                    continue
            else:
                step = find(1, cursor)
                if step < 0:
                    break
                cursor = step + 1
            waiting[step] = 0
            if removal is not None and removal.is_unused(step):
                work.cursor = cursor
                self._erase(step, work)
                class_of = self.classes.of_step
                continue
            slots = step_slots[step]
            # Most steps have two slots or three; in a loop these would take thrice as long.
            if len(slots) == 3:
                first, second, third = slots
                ids: tuple[int, ...] = current[first], current[second], current[third]
            elif len(slots) == 2:
                first, second = slots
                ids = current[first], current[second]
            else:
                ids = tuple([current[slot] for slot in slots])
            if transforms and step in transforms:
                outcome = memos[class_of[step]][self._seen(step, ids)]
                target_outcome = self._own(step, outcome)
            else:
                target_outcome = outcome = memos[class_of[step]][ids]
            if recorder is not None:
                self._record(recorder, step, ids, target_outcome, outcome)
            if not outcome:
                continue
            # A step is not put back for what it changes itself, so it may not be done at the next level.
            again.append(step)
            for position, new in target_outcome:
                slot = slots[position]
                if slot < 0:
                    continue
                steps = dependents_of(slot)
                if slot in coupled or slot in not_requeued:
                    work.cursor = cursor
                    self._change_several(slot, new, dict(outcome)[position], step, work)
                    continue
                current[slot] = new
                for other in steps:
                    if active[other] and not waiting[other] and other != step:
                        waiting[other] = 1
                        if other < cursor:
                            stack.append(other)
        # Every op without uses is gone after the first fixpoint.
        if removal is not None:
            self.removal = None
            self.classes.regroup(self._alive)

    def _change_several(self, slot: int, new: int, tied_new: int, step: int, work: Worklist) -> None:
        """Set a slot with other results of its op, with members of a sharding group, or with steps not put back.

        Mirrors basic_propagation.cc::updateTensorSharding.

        Args:
            slot: The slot.
            new: Its sharding.
            tied_new: The sharding for its group: that of the step, without the manual axes that the target adds.
            step: The step that is visited.
            work: The worklist.
        """
        problem = self.problem
        work.touch(self._assign(slot, new), self._active, self._again)
        work.put_back(problem.dependents.of(slot), step, self._active)
        work.touch(problem.dependents.not_requeued.get(slot, ()), self._active, self._again)
        for member, steps in problem.tied.get(slot, NO_TIES).others():
            work.touch(self._assign(member, tied_new), self._active, self._again)
            work.put_back(steps, step, self._active)
            work.touch(problem.dependents.all_of(member), self._active, self._again)

    def _erase(self, step: int, work: Worklist) -> None:
        """Erase the op of a step, as the reference's driver does when it meets an op without uses."""
        removal = self.removal
        assert removal is not None, "only called while ops are being erased"
        erasure = removal.erase(step)
        for gone in erasure.gone:
            self._alive[gone] = self._active[gone] = work.waiting[gone] = 0
        work.put_back(erasure.put_back, step, self._active)
        for other in erasure.touched:
            self._set_multi_use(other, removal, work)

    def _set_multi_use(self, step: int, removal: Removal, work: Worklist) -> None:
        classes, problem = self.classes, self.problem
        group = problem.groups[classes.groups[classes.of_step[step]]]
        multi_use = has_multi_use(problem.step_ops[step], removal.use_count)
        if multi_use == group.multi_use:
            return
        classes.move(step, problem.intern_group(group._replace(multi_use=multi_use)))
        self._again.append(step)
        for step_class in range(len(self._memos), len(classes.groups)):
            self._memos.append(NOTHING)
            self._directions.append(())
            self._direct(step_class, classes.vector(step_class, work.level), work.strategy)

    def _record(
        self, recorder: Recorder, step: int, ids: tuple[int, ...], target_outcome: Outcome, outcome: Outcome
    ) -> None:
        group = self.classes.groups[self.classes.of_step[step]]
        if self.problem.groups[group].rule != NO_RULE:
            seen = self._seen(step, ids) if step in self.problem.transforms else ids
            recorder.record(step, group, seen, self.current, target_outcome, outcome)

    def _seen(self, step: int, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shardings of an edge as its sources see them."""
        table = self.problem.table
        target = table.values[ids[-1]]
        if target is None:
            return ids
        before, _ = self.problem.transforms[step]
        return (*ids[:-1], table.intern(before(target)))

    def _own(self, step: int, outcome: Outcome) -> Outcome:
        """Return the outcome of a transformed visit as the target itself holds it."""
        table = self.problem.table
        _, after = self.problem.transforms[step]
        last = len(self.problem.step_slots[step]) - 1
        result = []
        for position, new in outcome:
            sharding = table.values[new]
            is_target = position == last and sharding is not None
            result.append((position, table.intern(after(sharding)) if is_target and sharding else new))
        return tuple(result)
