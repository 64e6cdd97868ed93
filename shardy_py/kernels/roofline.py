"""The roofline of a kernel: whether its operations or the bytes that it has to move take a core longer.

A core of an H100 moves 32 bytes in 2.2 cycles, and issues instructions of four warps in one. The same numbers stand for
all devices: they say which of both is the limit, and are not times.
"""

from __future__ import annotations

from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.recompute import least_bytes, recomputation
from shardy_py.values import frozen

SECTOR = 32
"""The bytes that memory moves at once."""
CYCLES_PER_SECTOR = 2.2
ISSUED_PER_CYCLE = 4


@frozen
class Roofline:
    """Operations and bytes of a kernel, and how many operations a core computes while it moves a byte.

    Args:
        operations: The operations on elements, one for each element that an op computes.
        bytes: The bytes of parameters and results, the fewest that a kernel that reads each element moves.
        balance: The operations that a core computes while it moves a byte.
    """

    operations: int
    bytes: int
    balance: float

    @property
    def intensity(self) -> float:
        """The operations for each byte."""
        return self.operations / max(1, self.bytes)

    @property
    def limit(self) -> str:
        """The part that takes longer, ``memory`` or ``arithmetic``."""
        return "memory" if self.intensity < self.balance else "arithmetic"


def roofline(kernel: Kernel) -> Roofline:
    """Return the roofline of a kernel.

    Args:
        kernel: The kernel.
    """
    balance = ISSUED_PER_CYCLE * kernel.device.threads_per_warp * CYCLES_PER_SECTOR / SECTOR
    return Roofline(recomputation(kernel).computed, sum(least_bytes(kernel)), balance)
