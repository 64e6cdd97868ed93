"""Threads that run at once: whole blocks of a grid, or some of their threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve

from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.run.memory import PHASE_SHIFT
from shardy_py.values import frozen

WARP = 32


@frozen(eq=False, slots=False)
class Threads:
    """Some threads of a grid.

    Args:
        launch: The grid.
        numbers: The number of each thread in the grid: blocks by number, threads of a block by number, x fastest.
        rows: The place of each thread's block among the blocks of the chunk.
        first_block: The number of the chunk's first block.
        phases: The barriers that each block of the chunk passed.
        warp: The threads that run in lockstep.
    """

    launch: Launch
    numbers: Any
    rows: Any
    first_block: int
    phases: Any
    warp: int = WARP

    @classmethod
    def of_blocks(cls, launch: Launch, first: int, last: int, warp: int = WARP) -> Threads:
        """Return all threads of the blocks from one number to before another."""
        size = block_size(launch)
        numbers = np.arange(first * size, last * size, dtype=np.int64)
        rows = np.repeat(np.arange(last - first, dtype=np.int64), size)
        return cls(launch, numbers, rows, first, np.zeros(last - first, np.int64), warp)

    @property
    def count(self) -> int:
        """The number of threads."""
        return len(self.numbers)

    @property
    def stamps(self) -> Any:
        """Phase and thread of each memory access."""
        stamps = self.numbers + 1
        return stamps | self.phases[self.rows] << PHASE_SHIFT if self.phases.any() else stamps

    @property
    def in_block(self) -> Any:
        """The number of each thread in its block."""
        return self.numbers % block_size(self.launch)

    def ids(self, kind: str, dimension: int) -> Any:
        """Return the ids of threads or blocks along a dimension; one value where the grid has size 1 there.

        Args:
            kind: ``thread`` or ``block``.
            dimension: The number of the dimension.
        """
        sizes = self.launch.threads if kind == "thread" else self.launch.blocks
        if sizes[dimension] == 1:
            return np.int64(0)
        numbers = self.in_block if kind == "thread" else self.rows + self.first_block
        return numbers // int(np.prod(sizes[:dimension], dtype=np.int64)) % sizes[dimension]

    def taken(self, positions: Any) -> Threads:
        """Return the threads at some positions."""
        return evolve(self, numbers=self.numbers[positions], rows=self.rows[positions])

    def name(self, position: int) -> str:
        """Return the name of the thread at a position: ``thread (3, 0, 0) of block (1, 0, 0)``."""
        single = self.taken(np.array([position]))
        thread, block = (
            ", ".join(str(int(np.max(single.ids(kind, number)))) for number in range(3)) for kind in ("thread", "block")
        )
        return f"thread ({thread}) of block ({block})"


def block_size(launch: Launch) -> int:
    """Return the number of threads of a block."""
    return launch.threads[0] * launch.threads[1] * launch.threads[2]
