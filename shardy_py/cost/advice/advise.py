"""Advice for a program: constraints where tensors disagree, the best ones combined greedily."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from math import prod
from typing import Any

from attrs import evolve, field

from shardy_py.api.keywords import keywords, narrow, takes
from shardy_py.api.options import ProgramInput, PropagateArguments
from shardy_py.api.program_source import DEFAULT_OPTIONS, SessionOptions
from shardy_py.cost.advice.arguments import (
    AdviceOptions,
    AdviceProgress,
    AdviseArguments,
    budget_problem,
    check_limit,
    open_judge,
)
from shardy_py.cost.advice.as_written import WrittenJudge, advised_text
from shardy_py.cost.advice.constraint_locations import SourceLineTensors, find_places
from shardy_py.cost.advice.constraints import Advice, AdvisedConstraint, Constraint
from shardy_py.cost.advice.layouts import ArgumentShardings
from shardy_py.cost.advice.pricing import Figures, Goal, Judge, Shardings
from shardy_py.cost.advice.reshard_candidates import conflicting_shardings, idle_axes
from shardy_py.cost.communications import moved_slot
from shardy_py.cost.reopen import session_arguments
from shardy_py.cost.session import Session, session_labels
from shardy_py.errors import ShardyError
from shardy_py.extensions import function
from shardy_py.frontends.select import frontend_of
from shardy_py.propagation.solve import Solution
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

LEAST_GAIN = 0.01
"""The part of the measure that a constraint of the set has to save."""
_KEPT = 12
"""Number of constraints that help alone and are tried again on top of the set."""

_OTHERS = 5
"""Number of constraints that help alone and are listed beside the set."""


@takes(AdviseArguments)
def advise(arguments: AdviseArguments) -> Advice:
    """Return sharding constraints that make a program cheaper.

    Wherever the tensors of an op disagree, the sharding of each is tried as a constraint on the others, in turn by
    program order and by the bytes that are sent. The best constraint is kept, then the best one on top of it, and so
    on. What is left is written into a copy of the program, and has the figures of `Session.evaluate` for that.

    Raises:
        ShardyError: the module or an option is not valid.
    """
    session = arguments.options.open(narrow(arguments, ProgramInput), keep_names=True)
    return advise_session(session, narrow(arguments, AdviceOptions))


def advise_again(arguments: PropagateArguments, options: AdviceOptions) -> Advice:
    """Return advice for a program that was propagated before.

    Args:
        arguments: The arguments of `propagate`.
        options: The options of the advice.

    Raises:
        ShardyError: an option is not valid.
    """
    session = Session.open(**{**keywords(session_arguments(arguments)), "keep_names": True})
    return advise_session(session, options)


def advise_session(session: Session, options: AdviceOptions) -> Advice:
    """Return advice for a program.

    Args:
        session: The session; it must keep the names of the program that was given.
        options: The options of the advice.

    Raises:
        ShardyError: an option is not valid.
    """
    check_limit(options.limit)
    goal, judge = open_judge(session, options)
    advice = _Search(judge, goal, options.trials, options.progress).run(options.limit)
    written = WrittenJudge(judge)
    advice = _verified(advice, written)
    if not advice.constraints:
        advice = _with_inputs(advice, written, options)
    return evolve(advice, warnings=(*session.warnings, *advice.warnings))


def _verified(advice: Advice, written: WrittenJudge) -> Advice:
    """Return advice with the figures of the program as it changes it, and without what then saves too little."""
    goal, before = advice.goal, written.as_it_is()
    chosen: list[AdvisedConstraint] = []
    for advised in advice.constraints:
        constraints = [*(item.constraint for item in chosen), advised.constraint]
        together, current = written.with_constraints(constraints), chosen[-1].together if chosen else before
        if together is not None and goal.is_better(together, current, by=LEAST_GAIN):
            alone = written.with_constraints([advised.constraint]) if chosen else together
            chosen.append(AdvisedConstraint(advised.constraint, alone or current, together))
    others = []
    for advised in advice.others:
        alone = written.with_constraints([advised.constraint])
        if alone is not None and goal.is_better(alone, before, by=LEAST_GAIN):
            others.append(AdvisedConstraint(advised.constraint, alone, alone))
    others.sort(key=lambda advised: goal.score(advised.alone))
    problem = budget_problem(goal, chosen[-1].together if chosen else before, "set of constraints")
    return evolve(advice, before=before, constraints=tuple(chosen), others=tuple(others), problem=problem)


def _with_inputs(advice: Advice, written: WrittenJudge, options: AdviceOptions) -> Advice:
    """Return advice with shardings of the inputs where none has one: no constraint inside shards what stays whole."""
    goal, judge = advice.goal, written.judge
    problem = judge.session.problem
    has_mesh = any(mesh.axes for mesh in problem.table.meshes.values())
    # Without shardings nothing is sent, so that there is nothing to plan for fewer bytes.
    if goal.measure == "bytes" or not has_mesh or any(problem.initial) or judge.session.source is None:
        return advice
    try:
        inputs: ArgumentShardings | None = function("best_inputs")(goal, judge, options.budget_memory)
    except ShardyError as error:  # what a planner asks for, or that nothing meets the budget
        return evolve(advice, warnings=error.diagnostics)
    if inputs is None or not goal.is_better(inputs.figures, advice.before, by=LEAST_GAIN):
        return advice
    return evolve(advice, inputs=inputs, problem=budget_problem(goal, inputs.figures, "layout"))


@define(eq=False)
class _Search:
    """Greedy search for a set of constraints."""

    judge: Judge
    goal: Goal
    trials: int
    progress: AdviceProgress
    places: dict[int, SourceLineTensors] = field(init=False)
    seen: dict[Constraint, Figures | None] = field(factory=dict)

    def run(self, limit: int) -> Advice:
        session = self.judge.session
        self.places = find_places(session, session_labels(session))
        before = self._initial_figures()
        chosen: list[AdvisedConstraint] = []
        current = before
        pool: Iterable[Constraint] = self._candidates({})
        while len(chosen) < limit:
            best = self._best(chosen, current, pool)
            if best is None:
                break
            chosen.append(best)
            current = best.together
            pool = chain(self._helpful_constraints(before), self._candidates(_shardings(chosen)))
        chosen = self._drop_superfluous(chosen, before)
        others = self._others(chosen, before)
        meshes = session.problem.table.meshes.values()
        devices = max((prod(axis.size for axis in mesh.axes) for mesh in meshes), default=1)
        machine = None if self.judge.machine is None else self.judge.machine.name
        return Advice(self.goal, before, tuple(chosen), others, self.judge.tried, devices, machine)

    def _initial_figures(self) -> Figures:
        figures = self.judge.price({})
        if figures is None:
            self.judge.evaluate({})
        assert figures is not None, "without figures the evaluation raises"
        return figures

    def _best(
        self, chosen: Sequence[AdvisedConstraint], current: Figures, pool: Iterable[Constraint]
    ) -> AdvisedConstraint | None:
        """Return the constraint that helps most on top of those that are chosen, if one helps enough."""
        base = _shardings(chosen)
        best: tuple[Constraint, Figures] | None = None
        for constraint in pool:
            if self.judge.tried >= self.trials:
                break
            if any(slot in base for slot in constraint.place.slots):
                continue
            figures = self._price(constraint, base)
            if figures is None or not self.goal.is_better(figures, current, by=LEAST_GAIN):
                continue
            if best is None or self._key(constraint, figures) < self._key(*best):
                best = constraint, figures
        if best is None:
            return None
        alone = best[1] if not base else self._price(best[0], {})
        return AdvisedConstraint(best[0], alone or current, best[1])

    def _key(self, constraint: Constraint, figures: Figures) -> tuple[float, ...]:
        """Return the key of a choice: of equally good constraints, the one of fewer tensors, then the first one."""
        return *self.goal.score(figures), len(constraint.place.slots), constraint.place.slots[0]

    def _price(self, constraint: Constraint, base: Shardings) -> Figures | None:
        figures = self.judge.price({**base, **constraint.shardings})
        if not base:
            self.seen[constraint] = figures
        self.progress(min(self.judge.tried, self.trials), self.trials)
        return figures

    def _candidates(self, shardings: Shardings) -> Iterable[Constraint]:
        """Return constraints to try: at disagreements, in turn the first and those that send most; then idle axes.

        The latter are as many as all dimensions of all tensors, so they are made one by one, until trials run out.
        """
        evaluation = self.judge.evaluate(shardings)
        problem = self.judge.session.problem
        sent: dict[int, float] = {}
        slots: dict[int, int] = {}
        ops = {op.id: op for op in evaluation.program.walk()}
        for item in evaluation.cost.transfers:
            op = ops[item.op_id]
            slot = moved_slot(problem, op.operands[0], slots) if op.operands else -1
            sent[slot] = sent.get(slot, 0.0) + item.runs * item.bytes
        weights: dict[Constraint, float] = {}
        for candidate in conflicting_shardings(problem, evaluation.solution):
            place = self.places.get(candidate.slot)
            if place is not None and candidate.slot not in shardings:
                weight = sum(sent.get(slot, 0.0) for slot in problem.step_slots[candidate.step] if slot >= 0)
                constraint = self._constraint(place, candidate.sharding)
                weights[constraint] = max(weights.get(constraint, 0.0), weight)
        heaviest = sorted(weights, key=lambda key: -weights[key])
        return _distinct(_in_turn(list(weights), heaviest), self._idle(evaluation.solution, shardings))

    def _idle(self, solution: Solution, shardings: Shardings) -> Iterator[Constraint]:
        """Yield constraints with an axis that a tensor does not use yet, those of the largest tensors first."""
        places = (place for slot, place in self.places.items() if slot not in shardings)
        first = [place.slots[0] for place in sorted(dict.fromkeys(places), key=_size)]
        for slot, sharding in idle_axes(self.judge.session.problem, solution, first):
            yield self._constraint(self.places[slot], sharding)

    def _constraint(self, place: SourceLineTensors, sharding: TensorSharding) -> Constraint:
        session = self.judge.session
        mesh = sharding.mesh if isinstance(sharding.mesh, Mesh) else session.problem.table.meshes[sharding.mesh]
        return Constraint(place, sharding, frontend_of(session.program).constraint_code(sharding, mesh))

    def _helpful_constraints(self, before: Figures) -> list[Constraint]:
        """Return the constraints that help alone, the best first."""
        ranked = [
            (self._key(constraint, figures), constraint)
            for constraint, figures in self.seen.items()
            if figures is not None and self._is_helpful(figures, before)
        ]
        return [constraint for _, constraint in sorted(ranked, key=lambda pair: pair[0])[:_KEPT]]

    def _is_helpful(self, figures: Figures, before: Figures) -> bool:
        return self.goal.is_better(figures, before, by=LEAST_GAIN)

    def _drop_superfluous(self, chosen: list[AdvisedConstraint], before: Figures) -> list[AdvisedConstraint]:
        """Return constraints without those that the later ones make superfluous."""
        constraints = [advised.constraint for advised in chosen]
        for constraint in [item.constraint for item in chosen[:-1]]:
            remaining = [other for other in constraints if other is not constraint]
            figures, without = (self.judge.price(_joined(items)) for items in (constraints, remaining))
            if figures is not None and without is not None and self.goal.score(without) <= self.goal.score(figures):
                constraints = remaining
        if len(constraints) == len(chosen):
            return chosen
        result = []
        for number, constraint in enumerate(constraints):
            together = self.judge.price(_joined(constraints[: number + 1]))
            result.append(AdvisedConstraint(constraint, self._price(constraint, {}) or before, together or before))
        return result

    def _others(self, chosen: Sequence[AdvisedConstraint], before: Figures) -> tuple[AdvisedConstraint, ...]:
        """Return the best constraint of each other place and outcome that helps alone."""
        places = {advised.constraint.place for advised in chosen}
        outcomes = {advised.alone for advised in chosen}
        others: list[AdvisedConstraint] = []
        for constraint in self._helpful_constraints(before):
            figures = self.seen[constraint]
            if len(others) == _OTHERS:
                break
            if figures is None or constraint.place in places or figures in outcomes:
                continue
            places.add(constraint.place)
            outcomes.add(figures)
            others.append(AdvisedConstraint(constraint, figures, figures))
        return tuple(others)


def _size(place: SourceLineTensors) -> int:
    """Return the key that sorts places, those of the largest tensors first."""
    return -prod(size or 0 for size in place.type.shape)


def _in_turn(first: Sequence[Constraint], second: Sequence[Constraint]) -> Iterator[Constraint]:
    pairs: Iterable[tuple[Any, ...]] = zip_longest(first, second)
    return (constraint for constraint in chain.from_iterable(pairs) if constraint is not None)


def _distinct(*constraints: Iterable[Constraint]) -> Iterator[Constraint]:
    """Yield constraints, each once, as they are asked for."""
    seen: set[Constraint] = set()
    for constraint in chain(*constraints):
        if constraint not in seen:
            seen.add(constraint)
            yield constraint


def _joined(constraints: Iterable[Constraint]) -> dict[int, Any]:
    return {slot: sharding for constraint in constraints for slot, sharding in constraint.shardings.items()}


def _shardings(chosen: Iterable[AdvisedConstraint]) -> dict[int, Any]:
    return _joined(advised.constraint for advised in chosen)


def write_advised(
    program: ProgramInput, shardings: Mapping[int, TensorSharding], options: SessionOptions = DEFAULT_OPTIONS
) -> str:
    """Return the text of a program as it was given, with more sharding constraints on its tensors.

    Args:
        program: The program, which is read again.
        shardings: Id of a value to its sharding, see `Advice.shardings`.
        options: How it is read, and more plugins.

    Raises:
        ShardyError: the module is not valid.
    """
    return advised_text(program, options.load_registry(), shardings)
