"""Schedules as values: a list of actions per mesh, its text, and its check against the dependences of the data."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence, Set

from shardy_py.errors import Diagnostic, ParseError, VerificationError
from shardy_py.mpmd.schedules.actions import (
    BACKWARD,
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    Action,
    ActionKind,
)
from shardy_py.values import frozen


@frozen
class PipelineSchedule:
    r"""The order in which each mesh runs its actions.

    >>> print(PipelineSchedule.parse("0F0,0B0\n1F0,1B0"))
    0F0,0B0
    1F0,1B0

    Args:
        orders: The actions of each mesh, in order.
        name: What it is called.
    """

    orders: tuple[tuple[Action, ...], ...]
    name: str = ""

    @classmethod
    def parse(cls, text: str, *, name: str = "") -> PipelineSchedule:
        """Return the schedule in a text with one line of comma-separated actions per mesh, as PyTorch writes it.

        Idle steps, which are empty there, are dropped: when an action runs follows from its dependences.

        Raises:
            ParseError: an action is malformed, or there is none.
        """
        rows = [[cell for cell in row if cell.strip()] for row in csv.reader(io.StringIO(text)) if row]
        if not any(rows):
            raise ParseError(Diagnostic("empty-schedule", "the schedule has no actions", hint="0F0,0B0"))
        return cls(tuple(tuple(map(Action.parse, row)) for row in rows), name)

    @property
    def mesh_count(self) -> int:
        """The number of meshes."""
        return len(self.orders)

    @property
    def stage_count(self) -> int:
        """The number of stages."""
        return 1 + max((action.stage for order in self.orders for action in order), default=-1)

    @property
    def microbatch_count(self) -> int:
        """The number of microbatches."""
        return 1 + max((action.microbatch for order in self.orders for action in order), default=-1)

    def meshes_of_actions(self) -> Mapping[Action, int]:
        """Return action to the number of the mesh that runs it.

        Raises:
            VerificationError: an action stands there twice.
        """
        meshes: dict[Action, int] = {}
        for mesh, order in enumerate(self.orders):
            for action in order:
                if action in meshes:
                    message = f"{action} stands on mesh {meshes[action]} and on mesh {mesh}"
                    raise VerificationError(Diagnostic("duplicate-action", message, hint="each action runs once"))
                meshes[action] = mesh
        return meshes

    def meshes_of_stages(self) -> Mapping[int, Set[int]]:
        """Return stage to the numbers of the meshes that run parts of it."""
        meshes: dict[int, set[int]] = {}
        for mesh, order in enumerate(self.orders):
            for action in order:
                meshes.setdefault(action.stage, set()).add(mesh)
        return meshes

    @property
    def has_replicated_stages(self) -> bool:
        """True where a stage runs on several meshes, as in DualPipe, which needs its weights on each."""
        return any(len(meshes) > 1 for meshes in self.meshes_of_stages().values())

    def check(self) -> None:
        """Check that every action is there once and that all of them can run in this order.

        Raises:
            VerificationError: an action is missing, stands there twice, or waits for one that waits for it; a deadlock
                names what each mesh waits for.
        """
        order_of_execution(self)

    def __str__(self) -> str:
        return "\n".join(",".join(map(str, order)) for order in self.orders)


def dependences(action: Action, stage_count: int, present: Mapping[Action, int]) -> list[Action]:
    """Return the actions whose results an action needs.

    A forward part needs the stage before; a backward part its own forward part, and the backward part of the stage
    behind it; gradients of weights need those of inputs.
    """
    stage, microbatch = action.stage, action.microbatch
    if action.kind is FORWARD:
        return [Action(FORWARD, stage - 1, microbatch)] if stage else []
    if action.kind is WEIGHT_GRADIENT:
        return [Action(INPUT_GRADIENT, stage, microbatch)]
    needed = [Action(FORWARD, stage, microbatch)]
    if stage + 1 < stage_count:
        backward = Action(BACKWARD, stage + 1, microbatch)
        needed.append(backward if backward in present else Action(INPUT_GRADIENT, stage + 1, microbatch))
    return needed


def order_of_execution(schedule: PipelineSchedule) -> Sequence[Action]:
    """Return all actions so that each comes after what it needs and after the one before it on its mesh.

    Raises:
        VerificationError: an action is missing or stands there twice, or there is no such order: a deadlock.
    """
    present, count = schedule.meshes_of_actions(), schedule.stage_count
    _refuse_missing(present, count, schedule.microbatch_count)
    done: set[Action] = set()
    result: list[Action] = []
    heads = [0] * schedule.mesh_count
    while len(result) < len(present):
        before = len(result)
        for mesh, order in enumerate(schedule.orders):
            while heads[mesh] < len(order):
                action = order[heads[mesh]]
                if not all(item in done for item in dependences(action, count, present)):
                    break
                done.add(action)
                result.append(action)
                heads[mesh] += 1
        if len(result) == before:
            raise _deadlock(schedule, heads, done, present)
    return result


def _deadlock(
    schedule: PipelineSchedule, heads: Sequence[int], done: set[Action], present: Mapping[Action, int]
) -> VerificationError:
    waiting = []
    for mesh, (order, head) in enumerate(zip(schedule.orders, heads, strict=True)):
        if head < len(order):
            missing = [item for item in dependences(order[head], schedule.stage_count, present) if item not in done]
            waiting.append(f"mesh {mesh} waits at {order[head]} for {', '.join(map(str, missing))}")
    message = f"the schedule is a deadlock: {'; '.join(waiting)}"
    return VerificationError(Diagnostic("deadlock", message, hint="move the actions that others wait for forwards"))


def _refuse_missing(present: Mapping[Action, int], stages: int, microbatches: int) -> None:
    has_backward = any(action.kind is not FORWARD for action in present)
    problems: list[Diagnostic] = []
    for stage in range(stages):
        for microbatch in range(microbatches):
            problems += _missing(present, stage, microbatch, has_backward=has_backward)
    if problems:
        raise VerificationError(*problems)


def _missing(present: Mapping[Action, int], stage: int, microbatch: int, *, has_backward: bool) -> Iterable[Diagnostic]:
    def has(kind: ActionKind) -> bool:
        return Action(kind, stage, microbatch) in present

    if not has(FORWARD):
        yield _no_action(Action(FORWARD, stage, microbatch))
    if not has_backward:
        return
    halves = has(INPUT_GRADIENT), has(WEIGHT_GRADIENT)
    if has(BACKWARD) and any(halves):
        message = f"stage {stage} has a whole backward part of microbatch {microbatch} and a half of it"
        yield Diagnostic("duplicate-action", message, hint="leave out one of them")
    elif not has(BACKWARD) and not all(halves):
        yield _no_action(Action(INPUT_GRADIENT if not halves[0] else WEIGHT_GRADIENT, stage, microbatch))


def _no_action(action: Action) -> Diagnostic:
    return Diagnostic("missing-action", f"{action} is missing in the schedule", hint="every stage runs each microbatch")
