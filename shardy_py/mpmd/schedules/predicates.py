"""Upstream's schedules: which of two scheduling units of one mesh comes first.

Mirrors mpmd/transforms/optimize/pipeline_schedule.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor

from shardy_py.errors import OptionError, unknown_name
from shardy_py.values import frozen


@frozen
class SchedulingUnit:
    """A scheduling unit: a fragment of named computations on one microbatch.

    Args:
        is_forward: Whether it is a forward part.
        counter: The number of the microbatch.
        stage: The stage, or None.
        split: ``keep`` for the half of a split backward part whose results are transferred, ``drop`` for the other
            half, "" for one that is not split.
        mesh: The number of the mesh among those that are not of hosts.
        mesh_name: The name of the mesh.
    """

    is_forward: bool
    counter: int
    stage: int | None = None
    split: str = ""
    mesh: int = 0
    mesh_name: str = ""

    @property
    def is_backward(self) -> bool:
        """True for a backward part, or one half of it."""
        return not self.is_forward

    @property
    def is_weight_gradient(self) -> bool:
        """True for the half of a backward part that nothing waits for."""
        return self.is_backward and self.split == "drop"

    @property
    def is_input_gradient(self) -> bool:
        """True for a backward part that the mesh before waits for."""
        return self.is_backward and self.split != "drop"


Predicate = Callable[[SchedulingUnit, SchedulingUnit, int], bool]
"""Returns whether the first unit comes before the second, of one mesh; the number is that of the meshes."""


def never(first: SchedulingUnit, second: SchedulingUnit, meshes: int) -> bool:
    """Leave the order of the program."""
    return False


def gpipe(first: SchedulingUnit, second: SchedulingUnit, meshes: int) -> bool:
    """All forward parts, then all backward parts, by microbatch."""
    if first.is_forward == second.is_forward:
        return first.counter < second.counter
    return first.is_forward


def one_forward_one_backward(first: SchedulingUnit, second: SchedulingUnit, meshes: int) -> bool:
    """Backward parts as early as they can be: mesh i of D runs at most D - i microbatches at a time."""
    if first.is_forward == second.is_forward:
        return first.counter < second.counter
    ahead = meshes - first.mesh
    if first.is_backward:
        return second.counter == first.counter + ahead
    return first.counter == second.counter + ahead - 1


def gpipe_but_last(first: SchedulingUnit, second: SchedulingUnit, meshes: int) -> bool:
    """`gpipe`, but `one_forward_one_backward` on the last mesh."""
    is_last = first.mesh == meshes - 1
    return (one_forward_one_backward if is_last else gpipe)(first, second, meshes)


def circular(first: SchedulingUnit, second: SchedulingUnit, meshes: int) -> bool:
    """Forward before backward; groups of D microbatches go through all stages of a mesh.

    As in the reference, units without stages have no order.
    """
    if first.stage is None or second.stage is None:
        return False
    if first.is_forward != second.is_forward:
        return first.is_forward
    keys = [(unit.counter // meshes, unit.stage or 0, unit.counter) for unit in (first, second)]
    if first.is_backward:
        keys = [(group, -stage, counter) for group, stage, counter in keys]
    return keys[0] < keys[1]


def circular_reversed(first: SchedulingUnit, second: SchedulingUnit, meshes: int) -> bool:
    """`circular` with the backward parts in the opposite order of the forward parts."""
    if first.stage is None or second.stage is None:
        return False
    if first.is_forward != second.is_forward:
        return first.is_forward
    keys = [(unit.counter // meshes, unit.stage or 0, unit.counter) for unit in (first, second)]
    return keys[0] < keys[1] if first.is_forward else keys[0] > keys[1]


def zero_bubble_h1(first: SchedulingUnit, second: SchedulingUnit, meshes: int) -> bool:
    """`one_forward_one_backward` with gradients of weights in the bubbles, and its memory."""
    mesh, ahead = first.mesh, meshes - first.mesh
    if first.is_input_gradient and second.is_forward and second.counter == first.counter + ahead:
        return True
    if first.is_forward and second.is_input_gradient and first.counter == second.counter + ahead - 1:
        return True
    if _ends_backward(first) and second.is_forward and second.counter == first.counter + meshes:
        return True
    if first.is_input_gradient and second.is_weight_gradient and first.counter == second.counter + mesh:
        return True
    return first.is_weight_gradient and second.is_input_gradient and second.counter == first.counter + mesh + 1


def zero_bubble_h2(latency: float) -> Predicate:
    """Return the schedule with more microbatches in flight, which fill the bubble at the start.

    Args:
        latency: The time of a transfer as a part of that of a forward part, for which one more microbatch is in flight.
    """

    def in_flight(mesh: int, meshes: int) -> int:
        return floor(2 * (meshes - mesh) - 1 + 2 * (meshes - mesh - 1) * latency)

    def predicate(first: SchedulingUnit, second: SchedulingUnit, meshes: int) -> bool:
        ahead, behind = in_flight(first.mesh, meshes), in_flight(meshes - first.mesh - 1, meshes)
        if first.is_forward and second.is_backward and first.counter < ahead:
            return True
        if first.is_input_gradient and second.is_forward and second.counter == first.counter + ahead:
            return True
        if first.is_forward and second.is_input_gradient and first.counter >= ahead:
            return first.counter == second.counter + ahead - 1
        if first.is_input_gradient and second.is_weight_gradient and first.counter == second.counter + behind - 1:
            return True
        return first.is_weight_gradient and second.is_input_gradient and second.counter == first.counter + behind

    return predicate


def parallel_with_wrap_around(first: SchedulingUnit, second: SchedulingUnit, meshes: int) -> bool:
    """Forward parts only: each mesh starts with the microbatch of its own number, then goes down and wraps around."""
    number = int("".join(char for char in first.mesh_name if char.isdecimal()) or first.mesh)

    def key(unit: SchedulingUnit) -> int:
        return number - unit.counter if unit.counter <= number else number + meshes - unit.counter + meshes

    return first.is_forward and second.is_forward and key(first) < key(second)


def _ends_backward(unit: SchedulingUnit) -> bool:
    """Return whether a backward part ends with a unit: the half for weights, or all of it on the first mesh."""
    return unit.is_weight_gradient or (unit.is_backward and not unit.split and unit.mesh == 0)


PREDICATES: dict[str, Predicate] = {
    "None": never,
    "1F1B": one_forward_one_backward,
    "GPipe": gpipe,
    "Circular": circular,
    "CircularWithReversedBackward": circular_reversed,
    "GPipeBut1F1BForLastMesh": gpipe_but_last,
    "ZeroBubbleH1": zero_bubble_h1,
    "ZeroBubbleH2ZeroTxLatency": zero_bubble_h2(0.0),
    "ZeroBubbleH2HalfTxLatency": zero_bubble_h2(0.5),
    "ZeroBubbleH2FullTxLatency": zero_bubble_h2(1.0),
    "ParallelPipelinesWithWrapAround": parallel_with_wrap_around,
}
"""Schedules by the names of upstream's option."""

SPLITTING = frozenset(name for name in PREDICATES if name.startswith("ZeroBubble"))
"""The schedules for which backward fragments are split."""


def find_predicate(name: str) -> Predicate:
    """Return the schedule of a name.

    Raises:
        OptionError: there is none.
    """
    if name not in PREDICATES:
        raise OptionError(unknown_name("unknown-schedule", f"there is no schedule {name!r}", name, PREDICATES))
    return PREDICATES[name]
