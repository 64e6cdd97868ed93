"""Work that devices do in the time in which they send a byte."""

from __future__ import annotations

from shardy_py.values import frozen


@frozen
class Balance:
    """The work that costs as much as a byte that is sent.

    Machines differ by far more than a program says, so that this only keeps small gains from costing much work.

    Args:
        operations_per_byte: The multiplications and additions that a device does in that time.
        memory_per_byte: The bytes that it reads or writes.
        loop_memory: The bytes that a value may take more on a device while a loop runs.
    """

    operations_per_byte: float = 100.0
    memory_per_byte: float = 64.0
    loop_memory: int = 2**28

    def operations(self, count: float) -> float:
        """Return the bytes that could be sent during some operations."""
        return count / self.operations_per_byte

    def touched(self, count: float) -> float:
        """Return the bytes that could be sent while some are read or written."""
        return count / self.memory_per_byte
