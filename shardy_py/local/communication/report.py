"""What the communication passes changed, for reports."""

from __future__ import annotations

from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.support.amounts import format_bytes
from shardy_py.values import frozen


@frozen
class CommunicationChange:
    """A change of the collectives of a program.

    Args:
        what: What was done, for example ``gathered before stablehlo.convert``.
        before: The bytes that each device sent for it.
        after: The bytes that each device sends now.
        location: The location of the op in the source, or "".
    """

    what: str
    before: float
    after: float
    location: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {format_bytes(round(self.after))} instead of {format_bytes(round(self.before))}"


def record_change(context: PassContext, change: CommunicationChange) -> None:
    """Add a change to the record of a context, where there is one."""
    if context.communication is not None:
        context.communication.append(change)
