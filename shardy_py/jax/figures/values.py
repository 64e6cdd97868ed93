"""XLA's figures of a compiled program, as values."""

from __future__ import annotations

from shardy_py.values import frozen


@frozen
class XlaCollective:
    """One collective of a compiled program.

    Args:
        kind: Its kind, as in `shardy_py.cost.estimates.Transfer`.
        operands: The number of tensors that it moves at once.
        group: The number of devices in a group.
        bytes: The bytes that one device sends each time.
        runs: The number of runs.
        source: The name of the op that XLA made it for, or "".
    """

    kind: str
    operands: int
    group: int
    bytes: float
    runs: float
    source: str = ""


@frozen
class XlaFigures:
    """XLA's numbers for one device, loops counted as often as they run.

    Args:
        flops: Operations, without transcendental ones.
        transcendentals: Transcendental operations.
        bytes_accessed: Bytes that instructions read and write.
        collectives: The collectives.
        argument_bytes: The arguments.
        result_bytes: The results.
        alias_bytes: The results that lie in the memory of donated arguments.
        temporary_bytes: The temporary values.
        unknown_loops: The number of loops of unknown length; they are counted once.
    """

    flops: float
    transcendentals: float
    bytes_accessed: float
    collectives: tuple[XlaCollective, ...]
    argument_bytes: int
    result_bytes: int
    alias_bytes: int
    temporary_bytes: int
    unknown_loops: int = 0

    @property
    def peak_bytes(self) -> int:
        """The memory of the program: arguments, results that do not lie in their memory, and temporary values."""
        return self.argument_bytes + self.result_bytes - self.alias_bytes + self.temporary_bytes

    @property
    def communication_bytes(self) -> float:
        """The bytes that one device sends."""
        return sum(item.bytes * item.runs for item in self.collectives)
