"""The record of what the communication passes change."""

from __future__ import annotations

from shardy_py.ir.interfaces.communication import CommunicationChange
from shardy_py.ir.interfaces.passes import PassContext

__all__ = ["CommunicationChange", "record_change"]


def record_change(context: PassContext, change: CommunicationChange) -> None:
    """Add a change to the record of a context, where there is one."""
    if context.communication is not None:
        context.communication.append(change)
