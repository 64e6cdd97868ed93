"""A search of schedules: the one that ends first among those that hold few enough microbatches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.mpmd.schedules.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Action, ActionKind
from shardy_py.mpmd.schedules.builders import SCHEDULES, build_schedule, check_counts
from shardy_py.mpmd.schedules.schedule import PipelineSchedule
from shardy_py.mpmd.schedules.simulation import StageTimes, Timeline, simulate
from shardy_py.support.arguments import shown
from shardy_py.values import define, frozen

_SLOPES = (1.0, 1.25, 1.5, 1.75, 2.0, 2.25)
_DELAYS = (1.0, 2.0, 2.5, 3.0, 4.0)
_GAPS = (0.0, 0.25, 0.5, 1.0)
_SLACK = 1e-9


@frozen
class _Shape:
    """A member of the family of schedules that is searched.

    Args:
        slope: Microbatches in flight on a mesh, for each mesh from it to the last.
        offset: Microbatches in flight besides.
        delay: Microbatches by which gradients of weights are late, for each mesh before this one.
        gap: Least part of a gradient of weights for which a mesh, once it has no forward parts, waits rather than
            delay the gradient of an input.
    """

    slope: float
    offset: int
    delay: float
    gap: float


def search_schedule(
    *,
    meshes: int,
    microbatches: int,
    times: StageTimes | Mapping[str, float] | None = None,
    limit: float | None = None,
    weight_activations: float = 1.0,
) -> Timeline:
    """Return the timeline of the schedule that takes least time, with one stage on each mesh.

    The schedules by name take part, and a family with split backward parts, whose warm-up and delays are varied.

    >>> timeline = search_schedule(meshes=4, microbatches=8, limit=4)
    >>> round(timeline.bubble_rate, 4), timeline.schedule.name
    (0.1111, 'ZB-H1')

    Args:
        meshes: The number of meshes.
        microbatches: The number of microbatches.
        times: The times of actions; by default 1 each, and none for transfers.
        limit: The largest number of microbatches whose activations a mesh may hold; by default there is none.
        weight_activations: The part of these activations that gradients of weights still need, once the gradient of
            the input is there.

    Raises:
        OptionError: a number is not valid, or no schedule holds so few microbatches.
    """
    values = times if isinstance(times, StageTimes) else StageTimes(**dict(times or {}))
    _check_numbers(meshes, microbatches, limit, weight_activations)
    best: Timeline | None = None
    for schedule in _candidates(meshes, microbatches, values, limit, weight_activations):
        timeline = simulate(schedule, values)
        if limit is not None and timeline.held(weight_activations) > limit + _SLACK:
            continue
        if best is None or timeline.longest < best.longest - _SLACK:
            best = timeline
    if best is None:
        message = f"no schedule of {meshes} meshes holds at most {limit:g} microbatches"
        raise OptionError(Diagnostic("schedule-limit", message, hint=f"give limit={min(meshes, microbatches)}"))
    return best


def _check_numbers(meshes: int, microbatches: int, limit: float | None, weight_activations: float) -> None:
    check_counts(meshes=meshes, microbatches=microbatches)
    if limit is not None and not _is_amount(limit, float("inf")):
        message = f"limit is {shown(limit)}, not a number from 0 on"
        raise OptionError(Diagnostic("invalid-number", message, hint="give limit=4"))
    if not _is_amount(weight_activations, 1.0):
        message = f"weight_activations is {shown(weight_activations)}, not a number from 0 to 1"
        raise OptionError(Diagnostic("invalid-number", message, hint="give weight_activations=1.0"))


def _is_amount(value: object, top: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= top


def _candidates(
    meshes: int, microbatches: int, times: StageTimes, limit: float | None, weight_activations: float
) -> Iterator[PipelineSchedule]:
    """Give schedules by name first, so that a name is the answer where nothing is better; none twice."""
    for name in SCHEDULES:
        try:
            schedule = build_schedule(name, meshes=meshes, microbatches=microbatches)
        except OptionError:
            continue  # It does not exist for these numbers.
        if schedule.stage_count == meshes and not schedule.has_replicated_stages:
            yield schedule
    seen = set()
    for values in product(_SLOPES, (-1, 0, 1), _DELAYS, _GAPS):
        shape = _Shape(*values)
        rows = [_warm_up(shape, mesh, meshes, microbatches, limit, weight_activations) for mesh in range(meshes)]
        key = tuple(rows), shape.gap
        if key not in seen and (limit is None or rows[0][0] <= limit):
            seen.add(key)
            yield PipelineSchedule(_Ordering(rows, microbatches, times, shape.gap).orders(), "searched")


def _warm_up(
    shape: _Shape, mesh: int, meshes: int, microbatches: int, limit: float | None, weight_activations: float
) -> tuple[int, int]:
    """Return the microbatches in flight on a mesh, and the delay of its gradients of weights that memory allows."""
    ahead = min(microbatches, max(1, int(shape.slope * (meshes - mesh)) + shape.offset))
    delay = int(shape.delay * mesh)
    if limit is not None and weight_activations:
        delay = max(0, int(min(delay, (limit - ahead) / weight_activations + _SLACK)))
    return ahead, delay


@define
class _Ordering:
    """The run of a member of the family: lists until the last forward part, then what is ready.

    Attributes:
        rows: Microbatches in flight and delay of each mesh.
        count: The number of microbatches.
        times: The times of actions.
        gap: See `_Shape`.
    """

    rows: list[tuple[int, int]]
    count: int
    times: StageTimes
    gap: float

    def orders(self) -> tuple[tuple[Action, ...], ...]:
        """Return the orders of all meshes, in the sequence in which actions start."""
        meshes = len(self.rows)
        steady = [self._steady(*row) for row in self.rows]
        never = [float("inf")] * self.count
        arrived = {(FORWARD, mesh): list(never) if mesh else [0.0] * self.count for mesh in range(meshes)}
        arrived |= {(INPUT_GRADIENT, mesh): list(never) for mesh in range(meshes)}
        counts = {(kind, mesh): 0 for kind in (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT) for mesh in range(meshes)}
        free = [0.0] * meshes
        orders: list[list[Action]] = [[] for _ in range(meshes)]

        def start(kind: ActionKind, mesh: int) -> float:
            number = counts[kind, mesh]
            ready = 0.0 if kind is WEIGHT_GRADIENT or number == self.count else arrived[kind, mesh][number]
            return max(free[mesh], ready)

        def choose(mesh: int) -> tuple[float, bool, int, ActionKind]:
            if len(orders[mesh]) < len(steady[mesh]):
                kind = steady[mesh][len(orders[mesh])]
                return start(kind, mesh), kind is WEIGHT_GRADIENT, mesh, kind
            inputs, weights = counts[INPUT_GRADIENT, mesh], counts[WEIGHT_GRADIENT, mesh]
            at = start(INPUT_GRADIENT, mesh) if inputs < self.count else float("inf")
            waits = at - free[mesh]
            if weights < inputs and waits > _SLACK and waits >= self.gap * self.times.weight_gradient:
                return free[mesh], True, mesh, WEIGHT_GRADIENT
            return at, False, mesh, INPUT_GRADIENT

        choices = [choose(mesh) for mesh in range(meshes)]
        for _ in range(3 * self.count * meshes):
            at, _, mesh, kind = min(choices, key=lambda choice: choice[:3])
            action = Action(kind, mesh, counts[kind, mesh])
            free[mesh] = at + self.times.of(action)
            target = mesh + 1 if kind is FORWARD else mesh - 1
            if kind is FORWARD and target == meshes:
                arrived[INPUT_GRADIENT, mesh][action.microbatch] = free[mesh]
            elif kind is not WEIGHT_GRADIENT and target >= 0:
                arrived[kind, target][action.microbatch] = free[mesh] + self.times.transfer
            counts[kind, mesh] += 1
            orders[mesh].append(action)
            for other in range(max(0, mesh - 1), min(meshes, mesh + 2)):
                choices[other] = choose(other)
        return tuple(map(tuple, orders))

    def _steady(self, ahead: int, delay: int) -> list[ActionKind]:
        """Return the kinds of actions of a mesh until its last forward part."""
        kinds = [FORWARD] * ahead
        for number in range(self.count - ahead):
            kinds += [INPUT_GRADIENT, *([WEIGHT_GRADIENT] if number >= delay else []), FORWARD]
        return kinds
