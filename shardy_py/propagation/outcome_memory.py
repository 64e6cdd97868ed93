"""Outcomes of steps that the runs of a process share, by the meshes of their programs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from shardy_py.propagation.sharding_table import ShardingTable
from shardy_py.propagation.step_outcomes import StepOutcomes
from shardy_py.sharding.mesh import Mesh

MANY_MESHES = 8
"""The limit on the meshes, or sets of meshes, with outcomes that are kept."""
MANY_OUTCOMES = 20_000
"""The limit on the rules, shardings and outcomes kept for the same meshes; the next run after that starts anew."""

_Meshes = tuple[tuple[str, Mesh], ...]


class OutcomeMemory:
    """Outcomes by meshes, the ones asked for last; threads may share it.

    An outcome depends on rule, directions, strategy, shardings and meshes only, so that those of one program hold in
    all others. Nothing of a program is kept but its rules and shardings.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[_Meshes, StepOutcomes] = OrderedDict()
        self._lock = Lock()

    def of(self, meshes: Mapping[str, Mesh]) -> StepOutcomes:
        """Return the outcomes for programs with some meshes, new ones where too many are kept."""
        key = tuple(meshes.items())
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None or found.size > MANY_OUTCOMES:
                found = StepOutcomes(ShardingTable(dict(meshes)))
            self._kept[key] = found
            if len(self._kept) > MANY_MESHES:
                self._kept.popitem(last=False)
        return found


SHARED = OutcomeMemory()
"""The memory of this process."""
