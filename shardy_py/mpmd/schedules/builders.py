"""Schedules of the literature as explicit lists.

Sources: GPipe arXiv:1811.06965, 1F1B 1806.03377, interleaved 2104.04473, ZB-H1, ZB-H2 and ZB-V 2401.10241 and
2405.15362, DualPipe 2412.19437. Stage k is on mesh k modulo the number of meshes, but for V placements and DualPipe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardy_py.errors import Diagnostic, OptionError, unknown_name
from shardy_py.mpmd.schedules.actions import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, Action, ActionKind
from shardy_py.mpmd.schedules.schedule import PipelineSchedule
from shardy_py.support.arguments import as_integer, shown


def build_schedule(name: str, *, meshes: int, microbatches: int, chunks: int = 1) -> PipelineSchedule:
    """Return a schedule by its name.

    >>> print(build_schedule("1F1B", meshes=2, microbatches=2))
    0F0,0F1,0B0,0B1
    1F0,1B0,1F1,1B1

    Args:
        name: One of `SCHEDULES`.
        meshes: The number of meshes.
        microbatches: The number of microbatches.
        chunks: The number of stages on each mesh, for schedules that have several.

    Raises:
        OptionError: there is no such schedule, or it does not exist for these numbers.
    """
    if name not in SCHEDULES:
        raise OptionError(unknown_name("unknown-schedule", f"there is no schedule {name!r}", name, SCHEDULES))
    check_counts(meshes=meshes, microbatches=microbatches, chunks=chunks)
    orders = SCHEDULES[name](meshes, microbatches, chunks)
    return PipelineSchedule(tuple(tuple(order) for order in orders), name)


def check_counts(**counts: int) -> None:
    """Check that there is at least one mesh, one microbatch, and the like.

    Raises:
        OptionError: a count is not a number from 1 on.
    """
    for word, value in counts.items():
        if (as_integer(value) or 0) < 1:
            message = f"{word} is {shown(value)}, not a number from 1 on"
            raise OptionError(Diagnostic("invalid-number", message, hint=f"give {word}=4"))


Orders = list[list[Action]]


def _one_chunk(name: str, chunks: int) -> None:
    if chunks != 1:
        hint = "choose Circular or Interleaved1F1B"
        raise OptionError(Diagnostic("invalid-number", f"{name} has one stage per mesh, not {chunks}", hint=hint))


def _gpipe(meshes: int, microbatches: int, chunks: int) -> Orders:
    _one_chunk("GPipe", chunks)
    return [
        [Action(kind, mesh, number) for kind in (FORWARD, BACKWARD) for number in range(microbatches)]
        for mesh in range(meshes)
    ]


def _one_forward_one_backward(meshes: int, microbatches: int, chunks: int) -> Orders:
    _one_chunk("1F1B", chunks)
    return [_in_flight_order(mesh, meshes - mesh, microbatches) for mesh in range(meshes)]


def _in_flight_order(stage: int, ahead: int, microbatches: int) -> list[Action]:
    """Return forward parts until some microbatches are in flight, then a backward part before each further one."""
    order = [Action(FORWARD, stage, number) for number in range(min(ahead, microbatches))]
    for number in range(microbatches):
        order.append(Action(BACKWARD, stage, number))
        if number + ahead < microbatches:
            order.append(Action(FORWARD, stage, number + ahead))
    return order


def _zero_bubble(meshes: int, microbatches: int, ahead: Callable[[int], int], delay: Callable[[int], int]) -> Orders:
    """Return the orders with split backward parts: gradients of weights come some microbatches late.

    The first mesh has nobody to send gradients to, so its backward parts stay whole.
    """
    orders: Orders = [_in_flight_order(0, ahead(0), microbatches)]
    for mesh in range(1, meshes):
        late, in_flight = delay(mesh), ahead(mesh)
        order = [Action(FORWARD, mesh, number) for number in range(min(in_flight, microbatches))]
        for number in range(microbatches):
            order.append(Action(INPUT_GRADIENT, mesh, number))
            if number >= late:
                order.append(Action(WEIGHT_GRADIENT, mesh, number - late))
            if number + in_flight < microbatches:
                order.append(Action(FORWARD, mesh, number + in_flight))
        first = max(0, microbatches - late)
        order += [Action(WEIGHT_GRADIENT, mesh, number) for number in range(first, microbatches)]
        orders.append(order)
    return orders


def _zero_bubble_h1(meshes: int, microbatches: int, chunks: int) -> Orders:
    _one_chunk("ZB-H1", chunks)
    return _zero_bubble(meshes, microbatches, lambda mesh: meshes - mesh, lambda mesh: mesh)


def _zero_bubble_h2(meshes: int, microbatches: int, chunks: int) -> Orders:
    _one_chunk("ZB-H2", chunks)
    return _zero_bubble(meshes, microbatches, lambda mesh: 2 * (meshes - mesh) - 1, lambda mesh: 2 * mesh)


def _circular(meshes: int, microbatches: int, chunks: int) -> Orders:
    orders: Orders = []
    groups = [range(first, min(first + meshes, microbatches)) for first in range(0, microbatches, meshes)]
    for mesh in range(meshes):
        stages = [mesh + chunk * meshes for chunk in range(chunks)]
        forward = [Action(FORWARD, stage, number) for group in groups for stage in stages for number in group]
        backward = [Action(BACKWARD, stage, number) for group in groups for stage in stages[::-1] for number in group]
        orders.append(forward + backward)
    return orders


def _interleaved(meshes: int, microbatches: int, chunks: int) -> Orders:
    if microbatches % meshes:
        message = f"Interleaved1F1B needs a multiple of {meshes} microbatches, not {microbatches}"
        raise OptionError(Diagnostic("invalid-number", message, hint=f"give {meshes * -(-microbatches // meshes)}"))
    total = microbatches * chunks

    def forward(mesh: int, number: int) -> Action:
        return _virtual(FORWARD, mesh, number, number // meshes % chunks)

    def backward(mesh: int, number: int) -> Action:
        return _virtual(BACKWARD, mesh, number, chunks - 1 - number // meshes % chunks)

    def _virtual(kind: ActionKind, mesh: int, number: int, chunk: int) -> Action:
        microbatch = number // (meshes * chunks) * meshes + number % meshes
        return Action(kind, mesh + chunk * meshes, microbatch)

    orders: Orders = []
    for mesh in range(meshes):
        warm_up = min(total, (meshes - mesh - 1) * 2 + (chunks - 1) * meshes)
        order = [forward(mesh, number) for number in range(warm_up)]
        for number in range(total - warm_up):
            order += [forward(mesh, warm_up + number), backward(mesh, number)]
        order += [backward(mesh, number) for number in range(total - warm_up, total)]
        orders.append(order)
    return orders


class _Counters:
    """The actions of one mesh, which count their microbatches by kind and stage.

    Args:
        first: Stage to the number of its first microbatch.
    """

    def __init__(self, first: dict[int, int] | None = None) -> None:
        self.order: list[Action] = []
        self._first = first or {}
        self._next: dict[tuple[ActionKind, int], int] = {}

    def count(self, kind: ActionKind, stage: int) -> int:
        """Return how many actions of a kind and stage there are."""
        return self._next.get((kind, stage), 0)

    def add(self, kind: ActionKind, stage: int) -> None:
        """Add the next action of a kind and stage."""
        number = self.count(kind, stage)
        self._next[kind, stage] = number + 1
        self.order.append(Action(kind, stage, self._first.get(stage, 0) + number))

    def add_all(self, stage: int, *kinds: ActionKind) -> None:
        """Add the next action of several kinds."""
        for kind in kinds:
            self.add(kind, stage)


def _zero_bubble_v(meshes: int, microbatches: int, chunks: int) -> Orders:
    """Return ZB-V: mesh i has stages i and 2p - 1 - i, so that the loss is where the first stage is.

    These are its two chunks, also where the number of chunks is left at 1.
    """
    if chunks > 2:
        hint = "choose Circular or Interleaved1F1B"
        raise OptionError(Diagnostic("invalid-number", f"ZB-V has two stages per mesh, not {chunks}", hint=hint))
    if microbatches < 2 * meshes - 1:
        message = f"ZB-V needs at least {2 * meshes - 1} microbatches for {meshes} meshes, not {microbatches}"
        raise OptionError(Diagnostic("invalid-number", message, hint=f"give {2 * meshes}"))
    return [_v_order(mesh, meshes, microbatches) for mesh in range(meshes)]


def _v_order(mesh: int, meshes: int, microbatches: int) -> list[Action]:
    down, up = mesh, 2 * meshes - 1 - mesh
    both = INPUT_GRADIENT, WEIGHT_GRADIENT
    actions = _Counters()
    for _ in range(2 * (meshes - mesh) - 1):
        actions.add(FORWARD, down)
    for _ in range(mesh):
        actions.add(FORWARD, up)
        actions.add(FORWARD, down)
    for _ in range(meshes - mesh):
        actions.add_all(up, FORWARD, *both)
    while actions.count(FORWARD, up) < microbatches:
        if actions.count(FORWARD, down) < microbatches:
            actions.add(FORWARD, down)
        actions.add_all(down, *both)
        actions.add_all(up, FORWARD, *both)
    for _ in range(mesh):
        actions.add(INPUT_GRADIENT, down)
        actions.add(INPUT_GRADIENT, up)
    for _ in range(meshes - mesh):
        actions.add_all(down, *both)
    for stage in (up, down):
        while actions.count(WEIGHT_GRADIENT, stage) < microbatches:
            actions.add(WEIGHT_GRADIENT, stage)
    return actions.order


def _dual_pipe(meshes: int, microbatches: int, chunks: int) -> Orders:
    """Return DualPipe: one half of the microbatches goes down the meshes, the other one up, with weights on both sides.

    Each mesh has the stage of its number for the first half, and the stage counted from the other end for the second.
    """
    _one_chunk("DualPipe", chunks)
    if meshes % 2 or microbatches % 2 or microbatches < 2 * meshes:
        message = (
            f"DualPipe needs an even number of meshes and an even number of at least {2 * meshes} microbatches, "
            f"not {meshes} and {microbatches}"
        )
        raise OptionError(Diagnostic("invalid-number", message, hint="give 4 meshes and 8 microbatches"))
    return [_dual_order(mesh, meshes, microbatches // 2) for mesh in range(meshes)]


class _DualMesh:
    """The actions of a mesh of DualPipe, by the direction that is nearer to it: 0, and the other one: 1."""

    def __init__(self, mesh: int, meshes: int, half: int) -> None:
        is_second_half = mesh >= meshes // 2
        self._mesh, self._meshes, self._half = mesh, meshes, half
        self._directions = (1, 0) if is_second_half else (0, 1)
        self._counts: dict[tuple[bool, int], int] = {}
        self._weights: list[tuple[int, int]] = []
        self.order: list[Action] = []

    def _action(self, kind: ActionKind, direction: int, number: int) -> Action:
        stage = self._mesh if direction == 0 else self._meshes - 1 - self._mesh
        return Action(kind, stage, number + direction * self._half)

    def _next(self, side: int, *, is_forward: bool) -> tuple[int, int]:
        direction = self._directions[side]
        number = self._counts.get((is_forward, direction), 0)
        self._counts[is_forward, direction] = number + 1
        return direction, number

    def forward(self, side: int) -> None:
        """Add the next forward part of a side."""
        self.order.append(self._action(FORWARD, *self._next(side, is_forward=True)))

    def backward(self, side: int, *, is_split: bool = False) -> None:
        """Add the next backward part of a side, or only its half for inputs."""
        direction, number = self._next(side, is_forward=False)
        self.order.append(self._action(INPUT_GRADIENT if is_split else BACKWARD, direction, number))
        if is_split:
            self._weights.append((direction, number))

    def weight(self) -> None:
        """Add the oldest half for weights that is left."""
        self.order.append(self._action(WEIGHT_GRADIENT, *self._weights.pop(0)))


def _dual_order(mesh: int, meshes: int, half: int) -> list[Action]:
    nearest = min(mesh, meshes - 1 - mesh)
    inner = meshes // 2 - nearest - 1
    actions = _DualMesh(mesh, meshes, half)
    for _ in range(2 * inner):
        actions.forward(0)
    for _ in range(nearest + 1):
        actions.forward(0)
        actions.forward(1)
    for _ in range(inner):
        actions.backward(1, is_split=True)
        actions.weight()
        actions.forward(1)
    for _ in range(half - meshes + nearest + 1):
        actions.forward(0)
        actions.backward(1)
        actions.forward(1)
        actions.backward(0)
    for _ in range(inner):
        actions.backward(1)
        actions.forward(1)
        actions.backward(0)
    _dual_end(actions, nearest, inner)
    return actions.order


def _dual_end(actions: _DualMesh, nearest: int, inner: int) -> None:
    """Add the end, where halves for weights fill the bubbles."""
    is_split = False
    for number in range(nearest + 1):
        is_split = is_split or (number == (nearest + 1) // 2 and nearest % 2 == 1)
        actions.backward(1, is_split=is_split)
        is_split = is_split or (number == (nearest + 1) // 2 and nearest % 2 == 0)
        actions.backward(0, is_split=is_split)
    for _ in range(inner):
        actions.weight()
        actions.backward(0, is_split=True)
    for _ in range(nearest + 1):
        actions.weight()


SCHEDULES: dict[str, Callable[[int, int, int], Sequence[list[Action]]]] = {
    "GPipe": _gpipe,
    "1F1B": _one_forward_one_backward,
    "Circular": _circular,
    "Interleaved1F1B": _interleaved,
    "ZB-H1": _zero_bubble_h1,
    "ZB-H2": _zero_bubble_h2,
    "ZB-V": _zero_bubble_v,
    "DualPipe": _dual_pipe,
}
"""Schedules by name; each takes the numbers of meshes, microbatches and chunks per mesh."""
