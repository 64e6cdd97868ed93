"""Schedules with split backward parts by a greedy rule: forward parts and gradients of inputs in turn, weights in gaps.

The rule is that of arXiv:2401.10241, section 3.1.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

from attrs import field

from shardy_py.mpmd.schedules.actions import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Action, ActionKind
from shardy_py.mpmd.schedules.simulation import StageTimes
from shardy_py.values import define, frozen

_NEVER = float("inf")
_SLACK = 1e-9


@frozen
class PipelineSizes:
    """Sizes, times and memory of a pipeline with one stage on each mesh.

    Args:
        meshes: The number of meshes.
        microbatches: The number of microbatches.
        times: The times of actions.
        limit: The largest number of microbatches whose activations a mesh may hold; infinite without one.
        weight_activations: The part of these activations that gradients of weights still need.
    """

    meshes: int
    microbatches: int
    times: StageTimes
    limit: float
    weight_activations: float

    @property
    def work(self) -> float:
        """The time of all actions of a mesh."""
        return self.microbatches * self.times.total

    def first_gradient_time(self, mesh: int) -> float:
        """Return the time from the first start of a mesh until its first gradient of an input can start."""
        behind, times = self.meshes - 1 - mesh, self.times
        return (behind + 1) * times.forward + behind * (times.input_gradient + 2 * times.transfer)

    def shortest(self) -> float:
        """Return a time that the first mesh takes at least, from its first start to its last end.

        It idles before its first gradient of an input once it holds `limit` microbatches. The last mesh starts when a
        forward part has come to it, runs all forward parts and gradients of inputs, and the last one goes all the way
        back.
        """
        times, ahead = self.times, min(self.microbatches, self.limit // 1)
        idle = max(0.0, self.first_gradient_time(0) - ahead * times.forward)
        way = self.first_gradient_time(0) - times.forward
        both = self.microbatches * (times.forward + times.input_gradient)
        return max(self.work + idle, way + both + times.weight_gradient)


@frozen
class GreedyRule:
    """Settings by which a mesh chooses among the actions that it could run.

    Args:
        in_flight: For each mesh, the largest number of microbatches with a forward part and no gradient of the input.
        least_gap: The least part of the time of a gradient of weights for which a mesh runs one rather than wait.
        idle_budget: The idle time of a mesh beyond which it runs one for any gap.
    """

    in_flight: tuple[int, ...]
    least_gap: float
    idle_budget: float


def greedy_orders(
    sizes: PipelineSizes, rule: GreedyRule, longest: float = _NEVER
) -> tuple[float, tuple[tuple[Action, ...], ...]] | None:
    """Return the longest time of a mesh from its first start to its last end, and the orders of all meshes.

    Returns:
        None where there is no such schedule, or its longest time would not be less than `longest`.
    """
    run = _GreedyRun(sizes, rule, [_Mesh() for _ in range(sizes.meshes)])
    run.meshes[0].forward_arrivals = [0.0] * sizes.microbatches
    run.propose(0)
    budget = longest - sizes.work - _SLACK
    for _ in range(3 * sizes.microbatches * sizes.meshes):
        mesh = run.start_next()
        if mesh is None or mesh.idle >= budget:
            return None
    spans = [mesh.free - mesh.first_start for mesh in run.meshes]
    return max(spans), tuple(_actions(number, mesh.order) for number, mesh in enumerate(run.meshes))


def _actions(stage: int, kinds: Sequence[ActionKind]) -> tuple[Action, ...]:
    """Return the actions of a stage: each kind runs the microbatches in order."""
    numbers = {kind: count() for kind in ActionKind}
    return tuple(Action(kind, stage, next(numbers[kind])) for kind in kinds)


@define
class _Mesh:
    """State of a mesh: the actions that it has run, and the arrivals of operands.

    Attributes:
        order: The kinds of its actions so far.
        forward_arrivals: When operands of forward parts arrive, by microbatch, as far as it is known.
        gradient_arrivals: The same for gradients of inputs.
        forward: The number of forward parts so far.
        inputs: The number of gradients of inputs so far.
        weights: The number of gradients of weights so far.
        first_start: When its first action starts.
        free: When its last action ends.
        idle: Its time without an action between the two.
        is_turn_of_forward: Whether it ran a gradient of an input after its last forward part.
        version: The number of its proposal that counts; those before it are void.
    """

    order: list[ActionKind] = field(factory=list)
    forward_arrivals: list[float] = field(factory=list)
    gradient_arrivals: list[float] = field(factory=list)
    forward: int = 0
    inputs: int = 0
    weights: int = 0
    first_start: float = 0.0
    free: float = 0.0
    idle: float = 0.0
    is_turn_of_forward: bool = False
    version: int = 0


@define
class _GreedyRun:
    """The run of a greedy rule: meshes propose what they would start next, and the earliest start is made.

    Attributes:
        sizes: The sizes, times and memory.
        rule: The rule.
        meshes: The meshes.
        proposals: A heap of start, priority, mesh, version and action.
    """

    sizes: PipelineSizes
    rule: GreedyRule
    meshes: list[_Mesh]
    proposals: list[tuple[float, bool, int, int, ActionKind]] = field(factory=list)

    def start_next(self) -> _Mesh | None:
        """Start the action that is first, and return its mesh; None where no mesh can start one."""
        while self.proposals:
            start, _, number, version, kind = heapq.heappop(self.proposals)
            mesh = self.meshes[number]
            if version == mesh.version:
                self._start(mesh, number, kind, start)
                return mesh
        return None

    def _start(self, mesh: _Mesh, number: int, kind: ActionKind, start: float) -> None:
        times = self.sizes.times
        if mesh.order:
            mesh.idle += start - mesh.free
        else:
            mesh.first_start = start
        mesh.order.append(kind)
        if kind is FORWARD:
            mesh.free = start + times.forward
            mesh.forward, mesh.is_turn_of_forward = mesh.forward + 1, False
            if number + 1 < self.sizes.meshes:
                after = self.meshes[number + 1]
                after.forward_arrivals.append(mesh.free + times.transfer)
                if len(after.forward_arrivals) == after.forward + 1:
                    self.propose(number + 1)
            else:
                mesh.gradient_arrivals.append(mesh.free)
        elif kind is INPUT_GRADIENT:
            mesh.free = start + times.input_gradient
            mesh.inputs, mesh.is_turn_of_forward = mesh.inputs + 1, True
            if number:
                before = self.meshes[number - 1]
                before.gradient_arrivals.append(mesh.free + times.transfer)
                if len(before.gradient_arrivals) == before.inputs + 1:
                    self.propose(number - 1)
        else:
            mesh.free = start + times.weight_gradient
            mesh.weights += 1
        self.propose(number)

    def propose(self, number: int) -> None:
        """Put what a mesh would start next, as far as it knows, in place of what it proposed before."""
        mesh = self.meshes[number]
        mesh.version += 1
        start, kind = self._choose(mesh, number)
        if start < _NEVER:
            heapq.heappush(self.proposals, (start, kind is WEIGHT_GRADIENT, number, mesh.version, kind))

    def _choose(self, mesh: _Mesh, number: int) -> tuple[float, ActionKind]:
        """Return the start and kind of the next action: what arrives first, in turn where both are there."""
        forward, gradient = self._forward_start(mesh, number), _arrival(mesh.gradient_arrivals, mesh.inputs, mesh.free)
        is_forward = forward <= gradient if mesh.is_turn_of_forward else forward < gradient
        start, kind = (forward, FORWARD) if is_forward else (gradient, INPUT_GRADIENT)
        gap = start - mesh.free
        if gap > _SLACK and mesh.weights < mesh.inputs:
            is_long = gap >= self.rule.least_gap * self.sizes.times.weight_gradient - _SLACK
            if is_long or mesh.idle + gap > self.rule.idle_budget + _SLACK:
                return mesh.free, WEIGHT_GRADIENT
        return start, kind

    def _forward_start(self, mesh: _Mesh, number: int) -> float:
        """Return when the next forward part can start; never, as things are, where too much is in flight or held."""
        in_flight = mesh.forward - mesh.inputs
        held = in_flight + 1 + self.sizes.weight_activations * (mesh.inputs - mesh.weights)
        if in_flight >= self.rule.in_flight[number] or held > self.sizes.limit + _SLACK:
            return _NEVER
        return _arrival(mesh.forward_arrivals, mesh.forward, mesh.free)


def _arrival(arrivals: list[float], number: int, free: float) -> float:
    return max(arrivals[number], free) if number < len(arrivals) else _NEVER
