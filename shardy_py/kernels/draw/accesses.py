"""Accesses of warps to memory: sectors and banks, from a run of their block in the interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.kernels.fusion.choose import slices_of
from shardy_py.kernels.kernel import Kernel
from shardy_py.kernels.roofline import SECTOR
from shardy_py.kernels.run.arrays import memory_inputs, memory_outputs, random_arrays
from shardy_py.kernels.run.frame import Access
from shardy_py.kernels.run.kernel import trace_block
from shardy_py.values import frozen

LINE = 128
"""The bytes of a cache line, and of a row of all banks of shared memory."""
WORD = 4


@frozen(slots=False)
class WarpAccess:
    """A read or write by the threads of a warp at once.

    Args:
        op: The name of the op.
        memory: The name of the memory.
        is_write: Whether it is written.
        is_shared: Whether it is shared memory.
        places: For every thread of the warp its first byte; None for a thread that does not take part.
        width: The bytes per thread.
    """

    op: str
    memory: str
    is_write: bool
    is_shared: bool
    places: tuple[int | None, ...]
    width: int

    @cached_property
    def words(self) -> dict[int, list[int]]:
        """The lanes that access each word, by the number of the word."""
        lanes_by_word: dict[int, list[int]] = {}
        for lane, place in enumerate(self.places):
            if place is not None:
                for word in range(place // WORD, (place + self.width - 1) // WORD + 1):
                    lanes_by_word.setdefault(word, []).append(lane)
        return lanes_by_word

    @property
    def bytes(self) -> int:
        """The number of distinct bytes that the threads access."""
        addresses: set[int] = set()
        for place in self.places:
            if place is not None:
                addresses.update(range(place, place + self.width))
        return len(addresses)

    @property
    def sectors(self) -> int:
        """The sectors of 32 bytes that are moved."""
        return len({word * WORD // SECTOR for word in self.words})

    @property
    def fewest_sectors(self) -> int:
        """The sectors that as many bytes fill."""
        return -(-self.bytes // SECTOR)

    @property
    def passes(self) -> int:
        """The steps in which banks give their words: the most words of one bank, wide accesses by part of the warp."""
        banks = LINE // WORD
        lanes = max(1, LINE // max(WORD, self.width))
        total = 0
        for first in range(0, len(self.places), lanes):
            words = {word for word, users in self.words.items() if any(first <= lane < first + lanes for lane in users)}
            total += max(Counter(word % banks for word in words).values(), default=0)
        return total

    @property
    def fewest_passes(self) -> int:
        """The steps without a conflict of banks."""
        return -(-len(self.words) // (LINE // WORD))

    @property
    def lines(self) -> dict[int, dict[int, list[int]]]:
        """The lanes that access each word of each line of 128 bytes, by the numbers of line and word."""
        words_by_line: dict[int, dict[int, list[int]]] = {}
        for word, lanes in sorted(self.words.items()):
            words_by_line.setdefault(word * WORD // LINE, {})[word % (LINE // WORD)] = lanes
        return words_by_line

    @property
    def pattern(self) -> tuple[object, ...]:
        """The common part of accesses that differ by where they begin alone."""
        first = next(place for place in self.places if place is not None)
        offsets = tuple(None if place is None else place - first for place in self.places)
        return self.op, self.memory, self.is_write, self.width, offsets, self.cost

    @property
    def cost(self) -> str:
        """The sectors or passes of the access as text, with the fewest possible where it has more."""
        if self.is_shared:
            least, actual, unit = self.fewest_passes, self.passes, "pass"
            return f"{actual} {unit if actual == 1 else unit + 'es'}" + (
                f" instead of {least}" if actual > least else ""
            )
        least, actual = self.fewest_sectors, self.sectors
        return f"{actual} sector{'s' * (actual != 1)}" + (f" instead of {least}" if actual > least else "")


STAGE = "convert-pure-calls"
"""The last stage at which accesses are to tensors: loops are unrolled, vectors are made."""


def warp_accesses(kernel: Kernel, *, block: int = 0, warp: int = 0, seed: int = 0) -> list[WarpAccess]:
    """Return what a warp reads and writes, in order.

    Args:
        kernel: The kernel.
        block: The number of its block.
        warp: The number of the warp in its block.
        seed: The seed of the parameters: accesses may depend on them.

    Raises:
        UnsupportedError: as for `Kernel.module`.
        OptionError: there is no such block or warp.
    """
    size = kernel.device.threads_per_warp
    blocks, warps = prod(kernel.launch.blocks), -(-prod(kernel.launch.threads) // size)
    for kind, number, count in (("block", block, blocks), ("warp", warp, warps)):
        if not 0 <= number < count:
            raise OptionError(
                Diagnostic(f"unknown-{kind}", f"there is no {kind} {number}; there are {count}, numbered from 0")
            )
    inputs, outputs = memory_inputs(kernel.fusion, random_arrays(kernel.fusion, seed)), memory_outputs(kernel.fusion)
    slices = slices_of(kernel.fusion, kernel.choice)
    names = [f"parameter {number}" for number in range(len(inputs))]
    names += [f"result {number}" for number in range(len(outputs))]
    by_argument = {f"argument {slice_}": name for slice_, name in reversed(list(zip(slices, names, strict=True)))}
    accesses = trace_block(kernel.parsed(STAGE), kernel.launch, inputs, outputs, block=block, slices=slices)
    return list(_of_warp(accesses, by_argument, warp, size))


def _of_warp(accesses: Sequence[Access], names: Mapping[str, str], warp: int, size: int) -> Iterator[WarpAccess]:
    tiles: dict[str, str] = {}
    for access in accesses:
        lanes = access.threads - warp * size
        is_own = (lanes >= 0) & (lanes < size)
        if not is_own.any():
            continue
        places: list[int | None] = [None] * size
        for lane, place in zip(lanes[is_own].tolist(), access.places[is_own].tolist(), strict=True):
            places[lane] = place
        name = names.get(access.memory, access.memory)
        if access.is_shared:
            name = tiles.setdefault(access.memory, f"tile {len(tiles)}")
        yield WarpAccess(access.op, name, access.is_write, access.is_shared, tuple(places), access.width)
