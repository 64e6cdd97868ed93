"""Simulation of schedules: when each mesh runs what, how long it idles, and how many microbatches it holds.

An action starts when its mesh is free and what it needs has arrived; a transfer takes its time and occupies nobody.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from attrs import field, fields

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.mpmd.schedules.actions import (
    BACKWARD,
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    Action,
)
from shardy_py.mpmd.schedules.schedule import PipelineSchedule, dependences, order_of_execution
from shardy_py.support.arguments import shown
from shardy_py.values import frozen


@frozen
class StageTimes:
    """Times of the parts of one stage and one microbatch, in any unit.

    Args:
        forward: The time of a forward part.
        input_gradient: The time of the half of a backward part that makes gradients of inputs.
        weight_gradient: The time of the other half.
        transfer: The time of a transfer between meshes.
    """

    forward: float = 1.0
    input_gradient: float = 1.0
    weight_gradient: float = 1.0
    transfer: float = 0.0

    def __attrs_post_init__(self) -> None:
        """Check that no time is negative.

        Raises:
            OptionError: one is.
        """
        for name in ("forward", "input_gradient", "weight_gradient", "transfer"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < float("inf"):
                message = f"the time {name} is {value!r}, not a number from 0 on"
                raise OptionError(Diagnostic("invalid-time", message, hint="give StageTimes(forward=1.0)"))

    @property
    def total(self) -> float:
        """The time of a stage for one microbatch."""
        return self.forward + self.input_gradient + self.weight_gradient

    def of(self, action: Action) -> float:
        """Return the time of an action."""
        times = {
            FORWARD: self.forward,
            BACKWARD: self.input_gradient + self.weight_gradient,
            INPUT_GRADIENT: self.input_gradient,
            WEIGHT_GRADIENT: self.weight_gradient,
        }
        return times[action.kind]


@frozen
class Event:
    """An action with the time at which it starts and ends."""

    mesh: int
    action: Action
    start: float
    end: float


@frozen
class Timeline:
    """The result of a simulation.

    Args:
        schedule: The schedule.
        times: The times of actions.
        events: The events of all meshes, in the order in which they start on each.
    """

    schedule: PipelineSchedule
    times: StageTimes
    events: tuple[Event, ...] = field(repr=False)

    def of_mesh(self, mesh: int) -> tuple[Event, ...]:
        """Return the events of a mesh, in order."""
        return tuple(event for event in self.events if event.mesh == mesh)

    @property
    def makespan(self) -> float:
        """The time at which the last event ends."""
        return max((event.end for event in self.events), default=0.0)

    @property
    def busy(self) -> float:
        """The time of all events together."""
        return sum(event.end - event.start for event in self.events)

    @property
    def bubble(self) -> float:
        """The part of the time of all meshes, until the last event ends, in which they idle."""
        total = self.makespan * self.schedule.mesh_count
        return 1.0 - self.busy / total if total else 0.0

    @property
    def longest(self) -> float:
        """The longest time of a mesh from its first start to its last end."""
        starts: dict[int, float] = {}
        ends: dict[int, float] = {}
        for event in self.events:
            starts.setdefault(event.mesh, event.start)
            ends[event.mesh] = event.end
        return max((ends[mesh] - starts[mesh] for mesh in starts), default=0.0)

    @property
    def bubble_rate(self) -> float:
        """The part of `longest` that is not the work of one mesh, as arXiv:2401.10241 counts it."""
        work = self.busy / self.schedule.mesh_count if self.schedule.mesh_count else 0.0
        return (self.longest - work) / self.longest if self.longest else 0.0

    def live(self, mesh: int) -> int:
        """Return the largest number of stages and microbatches that a mesh has begun and not yet ended.

        One begins with its forward part, and ends with the last of its backward parts: as long, what the forward part
        keeps for them must stay in memory.
        """
        first: dict[tuple[int, int], float] = {}
        last: dict[tuple[int, int], float] = {}
        for event in self.of_mesh(mesh):
            key = event.action.stage, event.action.microbatch
            first.setdefault(key, event.start)
            last[key] = event.end
        starts, ends = sorted(first.values()), sorted(last.values())
        return max((bisect_right(starts, start) - bisect_right(ends, start) for start in starts), default=0)

    def held(self, weight_activations: float = 1.0) -> float:
        """Return the largest number of microbatches whose activations a mesh holds.

        Args:
            weight_activations: The part that gradients of weights still need between the halves of a backward part.
        """
        released = {
            FORWARD: 0.0,
            BACKWARD: 1.0,
            INPUT_GRADIENT: 1.0 - weight_activations,
            WEIGHT_GRADIENT: weight_activations,
        }
        worst = 0.0
        amounts = [0.0] * self.schedule.mesh_count
        for event in self.events:
            if event.action.kind is FORWARD:
                amounts[event.mesh] += 1.0
                worst = max(worst, amounts[event.mesh])
            amounts[event.mesh] -= released[event.action.kind]
        return worst

    def chart(self, width: int = 72) -> str:
        """Return a drawing of the timeline: a line for each mesh, with the microbatch where it is forward work.

        Forward work shows its microbatch, backward work is ``b`` for inputs, ``w`` for weights, ``B`` for both.
        """
        scale = width / self.makespan if self.makespan else 0.0
        lines = []
        for mesh in range(self.schedule.mesh_count):
            line = ["."] * width
            for event in self.of_mesh(mesh):
                begin, end = round(event.start * scale), max(round(event.end * scale), round(event.start * scale) + 1)
                letter = _LETTERS.get(event.action.kind.value, str(event.action.microbatch % 10))
                line[begin:end] = [letter] * (min(end, width) - begin)
            lines.append(f"m{mesh} |{''.join(line)}|")
        return "\n".join(lines)

    def svg(self, *, width: int = 860) -> str:
        """Return a picture of the timeline in SVG; see `draw_svg`."""
        from shardy_py.mpmd.schedules.picture import draw_svg

        return draw_svg(self, width=width)

    def trace_events(self) -> list[dict[str, Any]]:
        """Return the timeline in the format of Chrome's traces, which Perfetto shows: a process for each mesh.

        A unit of time is a millisecond there.
        """
        names: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": mesh, "args": {"name": f"m{mesh}"}}
            for mesh in range(self.schedule.mesh_count)
        ]
        return names + [
            {
                "name": str(event.action),
                "cat": event.action.kind.name.lower(),
                "ph": "X",
                "pid": event.mesh,
                "tid": 0,
                "ts": 1000 * event.start,
                "dur": 1000 * (event.end - event.start),
                "args": {"stage": event.action.stage, "microbatch": event.action.microbatch},
            }
            for event in self.events
        ]


_LETTERS = {"B": "B", "I": "b", "W": "w"}


def simulate(schedule: PipelineSchedule, times: StageTimes | Mapping[str, float] | None = None) -> Timeline:
    """Return the timeline of a schedule.

    >>> from shardy_py.mpmd.schedules.builders import build_schedule
    >>> timeline = simulate(build_schedule("1F1B", meshes=4, microbatches=8))
    >>> timeline.makespan, [timeline.live(mesh) for mesh in range(4)]
    (33.0, [4, 3, 2, 1])

    Args:
        schedule: The schedule; it is checked.
        times: The times of actions; by default 1 each, and none for transfers.

    Raises:
        VerificationError: an action is missing or stands there twice, or the schedule is a deadlock.
        OptionError: a time is negative, or of no part of a stage.
    """
    values = _stage_times(times)
    meshes, count = schedule.meshes_of_actions(), schedule.stage_count
    free = [0.0] * schedule.mesh_count
    ends: dict[Action, float] = {}
    events = []
    for action in order_of_execution(schedule):
        mesh = meshes[action]
        start = free[mesh]
        for needed in dependences(action, count, meshes):
            start = max(start, ends[needed] + (values.transfer if meshes[needed] != mesh else 0.0))
        free[mesh] = ends[action] = start + values.of(action)
        events.append(Event(mesh, action, start, ends[action]))
    return Timeline(schedule, values, tuple(events))


def _stage_times(times: StageTimes | Mapping[str, float] | None) -> StageTimes:
    if isinstance(times, StageTimes):
        return times
    names = [part.name for part in fields(StageTimes)]
    if times is None or (isinstance(times, Mapping) and set(times) <= set(names)):
        return StageTimes(**dict(times or {}))
    hint = f"give a mapping from {', '.join(names)} to their times"
    raise OptionError(Diagnostic("invalid-time", f"{shown(times)} are not the times of a stage", hint=hint))
