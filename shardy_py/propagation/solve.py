"""The priority hierarchy as nested loops: user priorities > op-priority levels > strategies > fixpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, evolve

from shardy_py.propagation.compile import has_multi_use
from shardy_py.propagation.factors import Direction, Strategy
from shardy_py.propagation.problem import NO_RULE, Problem, StepGroup
from shardy_py.propagation.removal import Removal
from shardy_py.propagation.schedule import Schedule, kind_directions, matching_entries
from shardy_py.propagation.trace import Observer, Recorder, VisitLog
from shardy_py.propagation.transitions import NO_SHARDING, Directions, Outcome
from shardy_py.propagation.user_priorities import PriorityRound, start_priorities
from shardy_py.sharding.rule import FactorKind

Strategies = tuple[Strategy, ...]
AGGRESSIVE: Strategies = (Strategy.AGGRESSIVE,)
AfterPriority = Callable[[int, Sequence[int]], None]
"""Gets a user priority that is done, but is not the last, and the sharding id of every slot."""


@define(frozen=True)
class Solution:
    """The sharding id of every slot after propagation."""

    problem: Problem
    shardings: list[int]


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

    Args:
        problem: The compiled program; it is not changed and may be solved again.
        schedule: The op priorities; None for every op in both directions at once.
        strategies: The factor propagation strategies, in the order in which each level runs them.
        user_priorities: Whether priorities on dimension shardings count; if not they are carried along.
        observer: Gets every accepted update as it happens.
        after_priority: Called after every user priority but the last.
        log: Gets every visit, whether or not it changes anything.
    """
    recorder = None if observer is None and log is None else Recorder(problem, observer, log)
    solver = _Solver(problem, schedule, strategies, recorder)
    if recorder is not None:
        recorder.log.directions_of = solver.directions_of
        recorder.log.user_priorities = user_priorities
    if not user_priorities:
        solver.run_levels()
        return Solution(problem, solver.current)
    rounds = start_priorities(problem, solver.current)
    solver.run_levels()
    done = 0
    for one in rounds:
        if after_priority is not None:
            after_priority(done, solver.current)
        apply_round(problem, solver.current, one)
        solver.run_levels(one.priority)
        done = one.priority
    return Solution(problem, solver.current)


def apply_round(problem: Problem, current: list[int], one: PriorityRound) -> None:
    """Bring the dimensions of one user priority into play, in place."""
    for slot, update in one.updates:
        sharding = problem.table.values[current[slot]]
        if sharding is not None:
            current[slot] = problem.table.intern(update(sharding))


class _Solver:
    """The state of one solve."""

    def __init__(
        self, problem: Problem, schedule: Schedule | None, strategies: Strategies, recorder: Recorder | None
    ) -> None:
        self.problem = problem
        self.recorder = recorder
        self.schedule = schedule
        self.strategies = strategies
        self.current = list(problem.initial)
        self.step_groups = list(problem.step_groups)
        self.removal = Removal(problem.removal) if problem.removal else None
        self._predicated = schedule is not None and any(entry.selector.is_predicated for _, entry in schedule.entries)
        self._matches: dict[object, tuple[int, ...]] = {}
        self._by_kind: dict[tuple[tuple[int, ...], int, bool], dict[FactorKind, int]] = {}
        self._alive = bytearray(b"\x01") * problem.num_steps

    def run_levels(self, user_priority: int = 0) -> None:
        """Run every level, each with every strategy, to its fixpoint."""
        for level in range(len(self.schedule.levels) if self.schedule else 1):
            for strategy in self.strategies:
                if self.recorder is not None:
                    self.recorder.enter(user_priority, level, strategy)
                self._sync_function_results(strategy)
                self._fixpoint(level, strategy)
                self._sync_function_results(strategy)

    def _assign(self, slot: int, sharding_id: int) -> None:
        """Set a slot; results that had no sharding beside it become open, as one attribute holds them all."""
        current = self.current
        was_missing = current[slot] == NO_SHARDING
        current[slot] = sharding_id
        if was_missing and slot in self.problem.siblings:
            for other, rank in self.problem.siblings[slot]:
                if current[other] == NO_SHARDING:
                    current[other] = self.problem.table.fully_open_like(sharding_id, rank)

    def _sync_function_results(self, strategy: Strategy) -> None:
        """Propagate between the values the main function returns and its results."""
        problem, current = self.problem, self.current
        for number, (rule, operand, result) in enumerate(problem.function_results):
            ids = (current[operand], current[result])
            directions = (int(Direction.BOTH),) * rule.num_factors
            outcome = problem.transitions.outcome(problem.transitions.intern_rule(rule), directions, strategy, ids)
            if self.recorder is not None:
                self.recorder.record(-1 - number, -1, ids, current, outcome, outcome)
            for position, new in outcome:
                if position == 1:
                    current[result] = new
                    continue
                self._assign(operand, new)
                for member, _ in problem.tied.get(operand, ()):
                    self._assign(member, new)

    def _fixpoint(self, level: int, strategy: Strategy) -> None:
        """Visit steps, last put back first, until nothing changes."""
        problem, current, groups = self.problem, self.current, self.step_groups
        step_slots, notify, tied = problem.step_slots, problem.notify, problem.tied
        stack = [step for step in range(problem.num_steps - 1, -1, -1) if self._alive[step]]
        waiting = bytearray(self._alive)
        memo: dict[tuple[int, tuple[int, ...]], Outcome] = {}
        visit = self._make_visit(level, strategy)
        removal, recorder = self.removal, self.recorder
        while stack:
            step = stack.pop()
            if not waiting[step]:
                continue
            waiting[step] = 0
            if removal is not None and removal.is_unused(step):
                self._erase(step, stack, waiting)
                continue
            slots = step_slots[step]
            key = (groups[step], tuple([current[slot] for slot in slots]))
            outcome = memo.get(key)
            if outcome is None or step in problem.transforms:
                outcome = visit(step, key[1])
                if step not in problem.transforms:
                    memo[key] = outcome
            if recorder is not None:
                self._record(recorder, step, key[1], outcome)
            if not outcome:
                continue
            own = self._own(step, outcome) if step in problem.transforms else outcome
            # A sharding group gets what the step computed, without the manual axes that the target adds.
            for (position, new), (_, own_new) in zip(outcome, own, strict=True):
                slot = slots[position]
                if slot < 0:
                    continue
                self._assign(slot, own_new)
                self._put_back(notify[slot], step, stack, waiting)
                for member, followers in tied.get(slot, ()):
                    self._assign(member, new)
                    self._put_back(followers, step, stack, waiting)
        # Every op without uses is gone after the first fixpoint.
        self.removal = None

    def _put_back(self, steps: tuple[int, ...], visited: int, stack: list[int], waiting: bytearray) -> None:
        """Put steps back on the worklist that are not on it; the one just visited has nothing to add."""
        alive = self._alive
        for step in steps:
            if not waiting[step] and step != visited and alive[step]:
                waiting[step] = 1
                stack.append(step)

    def _erase(self, step: int, stack: list[int], waiting: bytearray) -> None:
        """Erase the op of a step, as the reference's driver does when it meets an op without uses."""
        removal = self.removal
        assert removal is not None, "only called while ops are being erased"
        erasure = removal.erase(step)
        for gone in erasure.gone:
            self._alive[gone] = 0
            waiting[gone] = 0
        for other in erasure.put_back:
            if not waiting[other]:
                waiting[other] = 1
                stack.append(other)
        for other in erasure.touched:
            self._set_multi_use(other, removal)

    def _set_multi_use(self, step: int, removal: Removal) -> None:
        group = self.problem.groups[self.step_groups[step]]
        multi_use = has_multi_use(self.problem.step_ops[step], removal.use_count)
        if multi_use != group.multi_use:
            self.step_groups[step] = self.problem.intern_group(evolve(group, multi_use=multi_use))

    def _make_visit(self, level: int, strategy: Strategy):  # type: ignore[no-untyped-def]
        """Return the function that computes what a visit of a step changes at a level."""
        problem, transitions = self.problem, self.problem.transitions
        directions_of: dict[object, Directions] = {}
        spreads = problem.table.spreads

        def visit(step: int, ids: tuple[int, ...]) -> Outcome:
            index = self.step_groups[step]
            group = problem.groups[index]
            if group.rule == NO_RULE:
                return ()
            key = (index, step) if self._predicated else index
            directions = directions_of.get(key)
            if directions is None:
                directions = directions_of[key] = self._directions(step, group, level)
            if not any(directions):
                return ()
            transform = problem.transforms.get(step)
            if transform is not None:
                return self._visit_transformed(step, ids, directions, strategy)
            if not any(map(spreads.__getitem__, ids)):
                return ()
            return transitions.outcome(
                group.rule,
                directions,
                strategy,
                ids,
                is_elementwise=group.is_elementwise,
                conservative=group.conservative,
            )

        return visit

    def _record(self, recorder: Recorder, step: int, ids: tuple[int, ...], outcome: Outcome) -> None:
        group = self.step_groups[step]
        if self.problem.groups[group].rule == NO_RULE:
            return
        if step in self.problem.transforms:
            recorder.record(step, group, self._seen(step, ids), self.current, self._own(step, outcome), outcome)
        else:
            recorder.record(step, group, ids, self.current, outcome, outcome)

    def directions_of(self, step: int, group: int, level: int) -> Directions:
        """Return the direction of every factor of a step, as a member of a group, at a level."""
        return self._directions(step, self.problem.groups[group], level)

    def _seen(self, step: int, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shardings of an edge as its sources see them."""
        table = self.problem.table
        target = table.values[ids[-1]]
        if target is None:
            return ids
        before, _ = self.problem.transforms[step]
        return (*ids[:-1], table.intern(before(target)))

    def _visit_transformed(
        self, step: int, ids: tuple[int, ...], directions: Directions, strategy: Strategy
    ) -> Outcome:
        """Visit an edge whose target looks different from its sources; the outcome is as the sources see it."""
        group = self.problem.groups[self.step_groups[step]]
        return self.problem.transitions.outcome(
            group.rule, directions, strategy, self._seen(step, ids), is_elementwise=group.is_elementwise
        )

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

    def _directions(self, step: int, group: StepGroup, level: int) -> Directions:
        """Return the direction of every factor of a step at a level."""
        rule = self.problem.transitions.rules[group.rule]
        if self.schedule is None or group.fixed is not None:
            directions = [int(Direction.BOTH if group.fixed is None else group.fixed)] * rule.num_factors
        else:
            by_kind = self._kind_directions(self._entries(step, group), level, multi_use=group.multi_use)
            directions = [by_kind[FactorKind.PASS_THROUGH]] * rule.num_factors
            for kind, factors in (
                (FactorKind.PERMUTATION, rule.permutation_factors),
                (FactorKind.NEED_REPLICATION, rule.need_replication_factors),
                (FactorKind.REDUCTION, rule.reduction_factors),
            ):
                for factor in factors:
                    directions[factor] = by_kind[kind]
        for factor in rule.blocked_propagation_factors:
            directions[factor] = 0
        return tuple(directions)

    def _kind_directions(self, entries: tuple[int, ...], level: int, *, multi_use: bool) -> dict[FactorKind, int]:
        assert self.schedule is not None, "only asked where there is a schedule"
        key = (entries, level, multi_use)
        found = self._by_kind.get(key)
        if found is None:
            directions = kind_directions(self.schedule, entries, level, multi_use=multi_use)
            found = self._by_kind[key] = {kind: int(direction) for kind, direction in directions.items()}
        return found

    def _entries(self, step: int, group: StepGroup) -> tuple[int, ...]:
        assert self.schedule is not None, "only asked where there is a schedule"
        key: object = step if self._predicated else (group.name, group.traits)
        found = self._matches.get(key)
        if found is None:
            found = self._matches[key] = matching_entries(self.schedule, self.problem.step_ops[step], group.traits)
        return found
