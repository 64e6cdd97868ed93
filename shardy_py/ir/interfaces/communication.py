"""Changes of what devices send each other, as values."""

from __future__ import annotations

from shardy_py.support.texts import format_bytes
from shardy_py.values import frozen


@frozen
class CommunicationChange:
    """A change of the collectives of a program.

    Args:
        what: What was done, for example ``moved behind stablehlo.multiply``.
        before: The bytes that each device sent for it.
        after: The bytes that each device sends now.
        location: The location of the op in the source, or "".
        locations: The locations of all ops between which something is sent otherwise.
    """

    what: str
    before: float
    after: float
    location: str = ""
    locations: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.what}: {format_bytes(round(self.after))} instead of {format_bytes(round(self.before))}"
