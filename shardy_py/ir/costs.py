"""The interface for costs of ops that do not follow from their sharding rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from attrs import frozen

from shardy_py.ir.graph import Op

COLLECTIVES = (
    "all_gather",
    "all_reduce",
    "reduce_scatter",
    "all_to_all",
    "collective_permute",
    "collective_broadcast",
)


@frozen
class OwnCollective:
    """The collective that an op of the program stands for.

    Args:
        kind: ``all_gather``, ``all_reduce``, ``reduce_scatter``, ``all_to_all``, ``collective_permute`` or
            ``collective_broadcast``.
        group: The numbers of the devices of one group; the others look alike.
    """

    kind: str
    group: tuple[int, ...]


class CostOpInterface(Protocol):
    """The cost of an op as its dialect knows it; each method has a default."""

    def get_flops(self, op: Op) -> float | None:
        """Return the operations that the whole op takes, unsharded; None to derive them from its rule.

        What one device does of them follows from the rule: the shares of all factors.
        """
        return None

    def get_region_runs(self, op: Op) -> Sequence[float | None]:
        """Return the number of runs of each region per run of the op; None for an unknown number.

        A region that may run or not counts as a fraction. Default: each region runs once.
        """
        return [1.0] * len(op.regions)

    def get_collective(self, op: Op) -> OwnCollective | None:
        """Return the collective that the op is; None for none."""
        return None
