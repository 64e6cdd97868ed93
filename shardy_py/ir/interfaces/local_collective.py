"""Collectives of local programs, as values."""

from __future__ import annotations

from shardy_py.ir.graph.types import Type
from shardy_py.values import frozen


@frozen
class LocalCollective:
    """A collective of a local program.

    Args:
        kind: ``all_gather``, ``all_reduce``, ``reduce_scatter``, ``all_to_all`` or ``collective_permute``.
        type: The type of its result on a device.
        groups: The groups of devices that it runs in, each in the order of the shards; of a permutation the pairs of
            source and target.
        location: The place in the source, or "".
    """

    kind: str
    type: Type
    groups: tuple[tuple[int, ...], ...]
    location: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.type} {[list(group) for group in self.groups]}"
