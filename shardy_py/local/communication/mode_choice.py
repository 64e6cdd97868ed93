"""The modes of one op: how its operands and results are sharded in each, and what it costs."""

from __future__ import annotations

from collections.abc import Callable

from attrs import field

from shardy_py.local.communication.routes import Route
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.tensor import ReductionOp, TensorSharding
from shardy_py.values import define, frozen

SHARDED, WHOLE = 0, 1
Modes = tuple[TensorSharding | None, TensorSharding | None]
"""The sharding of a tensor in each mode."""


@define(eq=False)
class ModeChoice:
    """An op, or the edge of a data-flow op, with its modes.

    Attributes:
        number: Its position in the program.
        operand_modes: The shardings of operands in each mode, by op id and operand number.
        value_modes: The shardings of results, or of the values on the edge, in each mode, by value id.
        modes: The modes in which it can run.
        current: The mode in which it runs.
        work: What it costs more to run whole, in bytes that could be sent meanwhile.
        partial: The axes along which its results are partial where it is sharded and now is whole.
        reduction: How these combine.
        sent: The bytes that its local form sends in each mode.
        collected: The bytes that its local form sends for whole results, by the operand that may be sharded then.
    """

    number: int
    operand_modes: dict[tuple[int, int], Modes] = field(factory=dict)
    value_modes: dict[int, Modes] = field(factory=dict)
    modes: tuple[int, ...] = (WHOLE,)
    current: int = WHOLE
    work: float = 0.0
    partial: tuple[AxisRef, ...] = ()
    reduction: ReductionOp = "sum"
    sent: list[float] = field(factory=lambda: [0.0, 0.0])
    collected: dict[tuple[int, int], float] = field(factory=dict)

    def pin(self) -> None:
        """Leave it as it is."""
        self.modes = (self.current,)


@frozen(eq=False)
class Leg:
    """The last part of the way of a value, to one of its users.

    Args:
        user: The user.
        targets: The sharding that the user needs in each mode, as far as it says where data is.
        collected: The bytes that the local form of the user sends where it takes the value as it is; None where it
            cannot.
    """

    user: ModeChoice
    targets: tuple[TensorSharding, TensorSharding]
    collected: float | None

    @classmethod
    def of(cls, route: Route, user: ModeChoice, closed: Callable[[TensorSharding | None], TensorSharding]) -> Leg:
        """Return the end of a route at a user."""
        key = route.user.id, route.number
        first, second = user.operand_modes[key]
        return cls(user, (closed(first), closed(second)), user.collected.get(key))
