"""Advice for the shardings of inputs: a search by the roles of the axes of the mesh."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import product
from math import prod
from typing import get_args

from attrs import evolve, field

from shardy_py.api.keywords import keywords, narrow, takes
from shardy_py.api.options import ProgramInput
from shardy_py.cost.advice.arguments import (
    AdviceProgress,
    AdviseInputsArguments,
    PricingOptions,
    budget_problem,
    open_judge,
)
from shardy_py.cost.advice.layouts import (
    ArgumentGroup,
    ArgumentShardings,
    InputAdvice,
    Role,
    Spec,
    closed_sharding,
    divides,
    group_arguments,
    name_layout,
)
from shardy_py.cost.advice.pricing import Figures, Goal, Judge
from shardy_py.cost.session import Session
from shardy_py.errors import Diagnostic, OptionError, ShardyError
from shardy_py.extensions import function
from shardy_py.frontends.select import frontend_of
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.values import define

_ROLES: tuple[Role, ...] = get_args(Role)
_PASSES = 2
"""Number of times that a descent goes over all groups."""

State = Mapping[ArgumentGroup, Spec]
"""Group to its spec; a group without one is left to propagation."""


@takes(AdviseInputsArguments)
def advise_inputs(arguments: AdviseInputsArguments) -> InputAdvice:
    """Return shardings of the arguments of a program, one layout for each assignment of roles to axes.

    Axes with the role ``data`` split the batch, those with ``fsdp`` the batch and every parameter, those with
    ``tensor`` the parameters that gain by it. What a parameter has along an axis is found by descent, one group of
    parameters at a time; parameters without a spec get theirs by propagation. The shardings that the program came with
    are one more layout, and so are those of a plan, where a solver of plans is installed.

    Raises:
        ShardyError: the module or an option is not valid, or the program has no mesh.
    """
    session = arguments.options.open(narrow(arguments, ProgramInput), keep_names=True)
    return advise_session_inputs(session, narrow(arguments, PricingOptions), planned=_planned(arguments))


def _planned(arguments: AdviseInputsArguments) -> Mapping[str, TensorSharding] | None:
    """Return the shardings of a plan for the shortest time; None where nothing can be planned."""
    if arguments.machine is None or arguments.minimise not in (None, "time") or find_spec("highspy") is None:
        return None
    program = keywords(narrow(arguments, ProgramInput))
    settings = {"machine": arguments.machine, "budget_memory": arguments.budget_memory, "options": arguments.options}
    try:
        plan = function("plan")(**program, **settings, known_layouts=False)
    except ShardyError:  # nothing fits, or the program has no plan; the search says so itself
        return None
    return dict(plan.inputs)


def advise_session_inputs(
    session: Session, options: PricingOptions, *, planned: Mapping[str, TensorSharding] | None = None
) -> InputAdvice:
    """Return shardings of the arguments of a program.

    Args:
        session: The session; it must keep the names of the program that was given.
        options: The options of the advice.
        planned: Argument to its sharding in a plan, which is one more layout.

    Raises:
        ShardyError: an option is not valid, or the program has no mesh.
    """
    goal, judge = open_judge(session, options)
    meshes = [(name, mesh) for name, mesh in session.problem.table.meshes.items() if mesh.axes]
    if not meshes:
        message = "the program has no mesh"
        raise OptionError(Diagnostic("no-mesh", message, hint="give one, for example data=4,model=2"))
    name, mesh = meshes[0]
    groups = group_arguments(session)
    if not groups:
        raise OptionError(Diagnostic("no-inputs", "the program has no arguments with dimensions"))
    search = _InputSearch(judge, goal, options.trials, options.progress, groups, name, mesh, planned)
    machine = None if judge.machine is None else judge.machine.name
    layouts = search.run()
    problem = budget_problem(goal, layouts[0].figures, "layout") if layouts else None
    return InputAdvice(
        goal,
        layouts,
        judge.tried,
        prod(axis.size for axis in mesh.axes),
        machine,
        problem,
        session.warnings,
        frontend_of(session.program).name,
    )


def best_layout(judge: Judge, goal: Goal, options: PricingOptions) -> ArgumentShardings | None:
    """Return the best layout of the inputs of a program none of whose values has a sharding; None if it has one."""
    session = judge.session
    mesh = next(((name, mesh) for name, mesh in session.problem.table.meshes.items() if mesh.axes), None)
    groups = group_arguments(session)
    if mesh is None or not groups or any(session.problem.initial):
        return None
    search = _InputSearch(judge, goal, options.trials, options.progress, groups, *mesh)
    try:
        return next(iter(search.run()), None)
    except OptionError:  # no argument that the mesh divides
        return None


@define(eq=False)
class _InputSearch:
    """Descent over the specs of groups, for each assignment of roles."""

    judge: Judge
    goal: Goal
    trials: int
    progress: AdviceProgress
    groups: tuple[ArgumentGroup, ...]
    mesh_name: str
    mesh: Mesh
    planned: Mapping[str, TensorSharding] | None = None
    bare: dict[int, TensorSharding | None] = field(init=False)

    def run(self) -> tuple[ArgumentShardings, ...]:
        main, slot_of = self.judge.session.main, self.judge.session.problem.slot_of
        results = [slot_of[value.id] for value in main.function_results if value.id in slot_of]
        self.bare = dict.fromkeys([slot for group in self.groups for slot in group.slots] + results)
        axes = tuple(axis.name for axis in self.mesh.axes if axis.size > 1)
        layouts = list(self._input_layout())
        batch = self._batch(axes)
        assignments = self._assignments(axes)
        for number, chosen in enumerate(assignments):
            # What an assignment leaves of its share of the trials goes to those behind it.
            share = max(self.trials - self.judge.tried, 0) // (len(assignments) - number)
            roles: dict[str, Role] = dict(zip(axes, chosen, strict=True))
            start = self._start(roles, batch)
            if start is not None:
                state, figures = self._descend(start, roles, batch[0], self.judge.tried + share)
                if figures is not None:
                    layouts.append(self._layout(state, batch[0], roles, figures))
        layouts += self._planned_layout(axes, batch[0])
        return tuple(sorted(_distinct(layouts), key=lambda layout: self.goal.score(layout.figures)))

    def _assignments(self, axes: tuple[str, ...]) -> list[tuple[Role, ...]]:
        """Return the assignments of roles, those that need no descent first."""
        every = product(_ROLES, repeat=len(axes))
        return sorted(every, key=lambda roles: (roles.count("tensor"), roles.count("fsdp")))

    def _input_layout(self) -> Iterator[ArgumentShardings]:
        """Yield the layout that the program came with, if arguments have shardings."""
        problem = self.judge.session.problem
        slots = [slot for group in self.groups for slot in group.slots]
        figures = self.judge.price({}) if any(problem.initial[slot] for slot in slots) else None
        if figures is not None:
            table = problem.table.values
            shardings = {group.pattern: table[problem.initial[group.slots[0]]] for group in self.groups}
            yield ArgumentShardings("as it is", shardings, figures, {})

    def _planned_layout(self, axes: tuple[str, ...], batch: ArgumentGroup) -> Iterator[ArgumentShardings]:
        """Yield the layout of a plan: in each group that of its first argument."""
        if self.planned is None:
            return
        state: dict[ArgumentGroup, Spec] = {}
        for group in self.groups:
            sharding = self.planned.get(group.names[0])
            if sharding is not None:
                state[group] = tuple(tuple(axis.name for axis in dim.axes) for dim in sharding.dim_shardings)
        figures = self._price(state)
        if figures is not None:
            layout = self._layout(state, batch, dict.fromkeys(axes, "data"), figures)
            yield evolve(layout, roles={})

    def _batch(self, axes: tuple[str, ...]) -> tuple[ArgumentGroup, int]:
        """Return the argument and the dimension that divide the work best."""
        candidates: list[tuple[float, int, ArgumentGroup, int]] = []
        for group in self.groups:
            for dimension in range(len(group.shape())):
                spec = self._on(group, dimension, axes)
                figures = None if spec is None else self._price({group: spec})
                if figures is not None:
                    candidates.append((figures.flops, len(candidates), group, dimension))
        if not candidates:
            message = "no dimension of an argument is divided by all axes of the mesh"
            raise OptionError(Diagnostic("no-batch", message, hint="give a smaller mesh, or sizes that divide"))
        _, _, group, dimension = min(candidates, key=lambda candidate: candidate[:2])
        return group, dimension

    def _on(self, group: ArgumentGroup, dimension: int, axes: tuple[str, ...]) -> Spec | None:
        """Return the spec with axes on one dimension; None where they do not divide it."""
        spec = tuple(axes if number == dimension else () for number in range(len(group.shape())))
        return spec if divides(group.shape(), spec, self.mesh) else None

    def _start(self, roles: Mapping[str, Role], batch: tuple[ArgumentGroup, int]) -> dict[ArgumentGroup, Spec] | None:
        """Return the state from which a descent begins; None where the batch cannot be split."""
        group, dimension = batch
        split = tuple(axis for axis, role in roles.items() if role != "tensor")
        spec = self._on(group, dimension, split)
        if spec is None:
            return None
        state = {group: spec}
        sharded = tuple(axis for axis, role in roles.items() if role == "fsdp")
        is_left_open = "tensor" in roles.values()
        for other in self.groups:
            if other is group:
                continue
            shape = other.shape()
            largest = sorted(range(len(shape)), key=lambda dim: -shape[dim])
            specs = (self._on(other, dim, sharded) for dim in largest)
            unsharded: Spec = ((),) * len(shape)
            chosen = next((candidate for candidate in specs if candidate is not None), unsharded)
            # Along axes that are free for tensors, propagation gives parameters without a spec what fits the others.
            if not is_left_open or chosen != unsharded:
                state[other] = chosen
        return state

    def _descend(
        self, state: dict[ArgumentGroup, Spec], roles: Mapping[str, Role], batch: ArgumentGroup, trials: int
    ) -> tuple[dict[ArgumentGroup, Spec], Figures | None]:
        """Return the state to which changes of one group at a time lead, and its figures."""
        figures = self._price(state)
        movable = tuple(axis for axis, role in roles.items() if role != "data")
        sharded = {axis for axis, role in roles.items() if role == "fsdp"}
        order = sorted(
            (member for member in self.groups if member is not batch), key=lambda member: -prod(member.shape())
        )
        for _ in range(_PASSES if movable else 0):
            before = figures
            for group in order:
                for spec in group.specs(movable, self.mesh):
                    lost = sharded.difference(axis for axes in spec for axis in axes)
                    if spec == state.get(group) or (lost and len(spec) > 1) or self.judge.tried >= trials:
                        continue
                    new_figures = self._price({**state, group: spec})
                    if new_figures is not None and (figures is None or self.goal.is_better(new_figures, figures)):
                        state, figures = {**state, group: spec}, new_figures
            if figures == before:
                break
        return state, figures

    def _price(self, state: State) -> Figures | None:
        figures = self.judge.price(self._shardings(state))
        self.progress(min(self.judge.tried, self.trials), self.trials)
        return figures

    def _shardings(self, state: State) -> dict[int, TensorSharding | None]:
        shardings = {
            slot: closed_sharding(spec, self.mesh_name) for group, spec in state.items() for slot in group.slots
        }
        return {**self.bare, **shardings}

    def _layout(
        self, state: State, batch: ArgumentGroup, roles: Mapping[str, Role], figures: Figures
    ) -> ArgumentShardings:
        shardings = self._propagated_shardings(state)
        parameters = self._parameters()
        if parameters <= {batch}:
            parameters = {group for group in self.groups if group is not batch}
        data, weights = (
            [shardings[group.pattern] for group in self.groups if (group in parameters) == is_parameter]
            for is_parameter in (False, True)
        )
        name = name_layout(data, weights, roles)
        return ArgumentShardings(name, shardings, figures, roles)

    def _parameters(self) -> set[ArgumentGroup]:
        """Return the arguments that a training step gives back, or gives the gradients of, as tensors of their type."""
        results = Counter(str(value.type) for value in self.judge.session.main.function_results)
        types = Counter({group: results[str(group.type)] for group in self.groups})
        parameters = {group for group, count in types.items() if count >= len(group.names)}
        return parameters if len(parameters) < len(self.groups) else set()

    def _propagated_shardings(self, state: State) -> dict[str, TensorSharding | None]:
        """Return the shardings of the groups after propagation, closed."""
        solution = self.judge.solve(self._shardings(state))
        values = self.judge.session.problem.table.values
        shardings = {group.pattern: values[solution.shardings[group.slots[0]]] for group in self.groups}
        return {
            name: None if sharding is None else evolve(sharding.closed_like(), unreduced_axes=())
            for name, sharding in shardings.items()
        }


def _distinct(layouts: list[ArgumentShardings]) -> Iterator[ArgumentShardings]:
    """Yield layouts, each shardings once."""
    seen: set[object] = set()
    for layout in layouts:
        key = tuple(layout.specs.items())
        if key not in seen:
            seen.add(key)
            yield layout
