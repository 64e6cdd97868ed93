"""Count the dimensions of sorts from the front: XLA's partitioner sorts shards along others."""

from __future__ import annotations

from typing import ClassVar

from shardy_py.ir.graph.program import Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.transforms.exported_ops import count_from_the_front
from shardy_py.values import NoFields


class CountSortDimensionsPass(NoFields):
    """Count the dimension of every ``stablehlo.sort`` from the front."""

    name: ClassVar[str] = "xla-count-sort-dimensions"

    def run(self, program: Program, context: PassContext) -> None:
        """Look at the ops of all functions."""
        count_from_the_front(program)
