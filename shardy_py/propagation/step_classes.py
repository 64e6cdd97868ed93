"""Classes of steps with equal outcomes for equal shardings, and their directions at each level of a schedule."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.propagation.problem import NO_RULE, Problem, StepGroup
from shardy_py.propagation.step_outcomes import Directions
from shardy_py.propagation.steps.factors import Direction
from shardy_py.schedule.builtin import FACTOR_KINDS, Vector, matching_entries, vectors_of_levels
from shardy_py.schedule.model import Schedule

_BOTH: Vector = (int(Direction.BOTH),) * len(FACTOR_KINDS) + (0,)


class StepClasses:
    """The classes of a problem under a schedule.

    A class is a step group, unless the schedule has predicates: these look at every op, and may divide a group.
    Classes with the same profile have the same directions at every level.

    Attributes:
        of_step: Step to class.
        members: Class to its steps.
        groups: Class to step group.
        by_profile: Profile to classes.
        vectors: Profile to the vector of every level.
    """

    __slots__ = (
        "_class_ids",
        "_directions",
        "_entries",
        "_is_predicated",
        "_problem",
        "_profile_ids",
        "_profile_of",
        "_schedule",
        "by_profile",
        "groups",
        "members",
        "of_step",
        "vectors",
    )

    def __init__(self, problem: Problem, schedule: Schedule | None) -> None:
        self.of_step: list[int] = problem.step_groups
        self.members: list[list[int]] = problem.group_steps
        self.groups: list[int] = []
        self.by_profile: list[list[int]] = []
        self.vectors: list[tuple[Vector, ...]] = []
        self._profile_of: list[int] = []
        self._problem = problem
        self._schedule = schedule
        self._profile_ids: dict[object, int] = {}
        self._entries: dict[object, tuple[int, ...]] = {}
        self._class_ids: dict[tuple[int, tuple[int, ...]], int] = {}
        self._directions: dict[tuple[tuple[int, ...], Vector], Directions] = {}
        self._is_predicated = schedule is not None and schedule.is_predicated
        if self._is_predicated:
            self._divide()
        else:
            for group, members in enumerate(problem.group_steps):
                # A group without members was made when a step of another with the same name and traits moved.
                self._add(group, members[0] if members else -1)

    @property
    def num_levels(self) -> int:
        """The number of levels."""
        return 1 if self._schedule is None else len(self._schedule.levels)

    def directions(self, group: int, vector: Vector) -> Directions:
        """Return the direction of every factor of a step group."""
        rule = self._problem.groups[group].rule
        if rule == NO_RULE:
            return ()
        kinds = self._problem.outcomes.kinds[rule]
        key = (kinds, vector)
        cached = self._directions.get(key)
        if cached is None:
            cached = self._directions[key] = tuple([vector[kind] for kind in kinds])
        return cached

    def directions_of(self, step: int, group: int, level: int) -> Directions:
        """Return the direction of every factor of a step, as a member of a group, at a level."""
        return self.directions(group, self.vectors[self._profile(group, step)][level])

    def vector(self, step_class: int, level: int) -> Vector:
        """Return the vector of a class at a level."""
        return self.vectors[self._profile_of[step_class]][level]

    def move(self, step: int, group: int) -> None:
        """Put a step into the class of another group."""
        if not self._is_predicated:
            for index in range(len(self.groups), group + 1):
                self._add(index, step)
            step_class = group
        else:
            step_class = self._class_of(step, group)
        if self.of_step is self._problem.step_groups:
            self.of_step = list(self.of_step)
        self.of_step[step] = step_class

    def regroup(self, alive: Sequence[int]) -> None:
        """Rebuild the members of all classes, after some steps moved and others were erased."""
        self.members = [[] for _ in self.groups]
        for step, step_class in enumerate(self.of_step):
            if alive[step]:
                self.members[step_class].append(step)

    def _divide(self) -> None:
        problem = self._problem
        self.members = []
        self.of_step = [self._class_of(step, group) for step, group in enumerate(problem.step_groups)]
        self.regroup(bytearray(b"\x01") * problem.num_steps)

    def _class_of(self, step: int, group: int) -> int:
        """Return the class of a step under a schedule with predicates, a new one where there is none."""
        key = (group, self._entries_of(self._problem.groups[group], step))
        class_id = self._class_ids.get(key)
        if class_id is None:
            class_id = self._class_ids[key] = len(self.groups)
            self._add(group, step)
        return class_id

    def _add(self, group: int, step: int) -> None:
        step_class, profile = len(self.groups), self._profile(group, step)
        self.groups.append(group)
        self.by_profile[profile].append(step_class)
        self._profile_of.append(profile)
        if step_class == len(self.members):
            self.members.append([])

    def _profile(self, group: int, step: int) -> int:
        """Return the profile of a group, of one of its steps where the schedule has predicates."""
        step_group = self._problem.groups[group]
        key: object = step_group.fixed
        if step_group.fixed is None and self._schedule is not None:
            key = (self._entries_of(step_group, step), step_group.multi_use)
        profile_id = self._profile_ids.get(key)
        if profile_id is None:
            profile_id = self._profile_ids[key] = len(self.vectors)
            self.by_profile.append([])
            self.vectors.append(self._vectors(step_group, step))
        return profile_id

    def _vectors(self, group: StepGroup, step: int) -> tuple[Vector, ...]:
        schedule = self._schedule
        if group.fixed is not None:
            return ((int(group.fixed),) * len(FACTOR_KINDS) + (0,),) * self.num_levels
        if schedule is None:
            return (_BOTH,)
        return vectors_of_levels(schedule, self._entries_of(group, step), multi_use=group.multi_use)

    def _entries_of(self, group: StepGroup, step: int) -> tuple[int, ...]:
        """Return the entries of the schedule that select a group, or one of its steps."""
        assert self._schedule is not None, "only asked where there is a schedule"
        key: object = step if self._is_predicated else (group.name, group.traits)
        cached = self._entries.get(key)
        if cached is None:
            cached = self._entries[key] = matching_entries(self._schedule, self._problem.step_ops[step], group.traits)
        return cached
