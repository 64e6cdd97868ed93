"""The loops of structured ops, from which rules, indexing maps and local forms follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shardy_py.ir.graph.program import Op
from shardy_py.sharding.combiner import Combiner
from shardy_py.values import frozen

if TYPE_CHECKING:
    from shardy_py.indexing import AffineMap


@frozen
class Loops:
    """The loops of a structured op.

    Args:
        maps: One indexing map per operand: inputs, then outputs.
        iterator_types: One per loop.
        combiner: The combiner of the iterations of reductions; None where they do not combine.
        whole: Loops that need replication whatever the maps say.
    """

    maps: tuple[AffineMap, ...]
    iterator_types: tuple[str, ...]
    combiner: Combiner | None = Combiner.ADD
    whole: frozenset[int] = frozenset()

    def maps_of_all(self, num_results: int) -> tuple[AffineMap, ...]:
        """Return the maps of all operands and results; each result has that of its output operand."""
        return (*self.maps, *self.maps[len(self.maps) - num_results :])


LoopsOf = Callable[[Op], Loops]
