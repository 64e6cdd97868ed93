"""Actions: what a mesh does for one stage and one microbatch, in the notation of ``torch.distributed.pipelining``."""

from __future__ import annotations

import re
from enum import Enum

from shardy_py.errors import Diagnostic, ParseError
from shardy_py.values import frozen


class ActionKind(Enum):
    """The part of the work of a stage on a microbatch.

    ``BACKWARD`` is both halves of the backward part; ``INPUT_GRADIENT`` is the half that the stage before waits for,
    and ``WEIGHT_GRADIENT`` the other one.
    """

    FORWARD = "F"
    BACKWARD = "B"
    INPUT_GRADIENT = "I"
    WEIGHT_GRADIENT = "W"

    @property
    def is_backward(self) -> bool:
        """True for what the stage before waits for."""
        return self in (ActionKind.BACKWARD, ActionKind.INPUT_GRADIENT)


FORWARD, BACKWARD = ActionKind.FORWARD, ActionKind.BACKWARD
INPUT_GRADIENT, WEIGHT_GRADIENT = ActionKind.INPUT_GRADIENT, ActionKind.WEIGHT_GRADIENT

_ACTION = re.compile(r"(\d+)([FBIW])(\d+)")


@frozen(cache_hash=True)
class Action:
    """The work of one stage on one microbatch.

    >>> str(Action(FORWARD, 0, 2)), Action.parse("1W3")
    ('0F2', Action(kind=<ActionKind.WEIGHT_GRADIENT: 'W'>, stage=1, microbatch=3))

    Args:
        kind: Which part of the work.
        stage: The stage; stages follow each other in the forward direction.
        microbatch: The microbatch.
    """

    kind: ActionKind
    stage: int
    microbatch: int

    @classmethod
    def parse(cls, text: str) -> Action:
        """Return the action in a text such as ``0F2``.

        Raises:
            ParseError: it is not one.
        """
        match = _ACTION.fullmatch(text.strip())
        if match is None:
            hint = "write the stage, one of F, B, I and W, and the microbatch: 0F2"
            raise ParseError(Diagnostic("invalid-action", f"{text!r} is not a valid action", hint=hint))
        return cls(ActionKind(match[2]), int(match[1]), int(match[3]))

    def __str__(self) -> str:
        return f"{self.stage}{self.kind.value}{self.microbatch}"
