"""Memory of kernels: words that threads read and write, with what is needed to see races."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from xdsl.dialects import builtin
from xdsl.ir import Attribute

from shardy_py.kernels.dialect.types import layout_of_type
from shardy_py.kernels.run.values import Array, word_dtype
from shardy_py.values import frozen

# A stamp says who accessed an element last: the phase of the block (barriers so far) above the number of the thread.
PHASE_SHIFT = 44
_ANY = (1 << PHASE_SHIFT) - 1
_POISON = 0xA5
# The alignment of buffers that kernels may rely on, as the entry function's arguments say.
ALIGNMENT = 256


def aligned(array: Any) -> Any:
    """Return an array whose first element stands at a multiple of the alignment: itself, or a copy."""
    if array.ctypes.data % ALIGNMENT == 0:
        return array
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@final
class Memory:
    """Words that threads share, and the stamps of the last accesses.

    Args:
        words: The elements as bits.
        name: What it is, for errors.
        block_threads: The threads of a block.
        is_shared: Whether it belongs to blocks: a row of words per block.
        is_writable: Whether threads may write.
    """

    def __init__(
        self, words: Any, name: str, block_threads: int, *, is_shared: bool = False, is_writable: bool = False
    ) -> None:
        self.words = words
        self.name = name
        self.is_shared = is_shared
        self.is_writable = is_writable
        self._block_threads = block_threads
        self.writers = np.zeros(len(words), np.int64) if is_writable else None
        self._is_undefined = False
        self._readers: Any = None

    @classmethod
    def undefined(cls, type_: Attribute, count: int, name: str, block_threads: int, *, is_shared: bool) -> Memory:
        """Return memory with undefined elements: a pattern of bits that is not a small number."""
        dtype = np.dtype(word_dtype(type_))
        words = np.full(count * dtype.itemsize, _POISON, np.uint8).view(dtype)
        memory = cls(words, name, block_threads, is_shared=is_shared, is_writable=True)
        memory._is_undefined = True
        return memory

    def unwritten(self, places: Any) -> Any:
        """Return where words are still undefined; None for memory that has content from the begin."""
        return self.writers[places] == 0 if self._is_undefined and self.writers is not None else None

    def _unordered(self, old: Any, new: Any) -> Any:
        """Return where nothing orders an earlier access before this one: another thread, no barrier between."""
        who, me = old & _ANY, new & _ANY
        other = (old != 0) & (who != me)
        if not other.any():
            return other
        if self.is_shared:
            return other & (old >> PHASE_SHIFT == new >> PHASE_SHIFT)
        count = self._block_threads
        same_block = (who != _ANY) & ((who - 1) // count == (me - 1) // count)
        return other & ~(same_block & (old >> PHASE_SHIFT != new >> PHASE_SHIFT))

    def note_read(self, places: Any, stamps: Any) -> Any:
        """Record a read; return where another thread wrote with nothing between.

        Args:
            places: The places of the words.
            stamps: The stamps of the threads.
        """
        if self.writers is None:
            return np.zeros(len(places), bool)
        if self._readers is None:
            self._readers = np.zeros(len(self.words), np.int64)
        several = self._unordered(self._readers[places], stamps)
        self._stamp(self._readers, places, stamps, several)
        return self._unordered(self.writers[places], stamps)

    def write(self, places: Any, words: Any, stamps: Any) -> Any:
        """Write words; return where another thread wrote another value, or read the former one, with nothing between.

        Args:
            places: The places of the words.
            words: The values as bits.
            stamps: The stamps of the threads.
        """
        assert self.writers is not None
        several = self._unordered(self.writers[places], stamps)
        races = several
        if self._readers is not None:
            races = races | self._unordered(self._readers[places], stamps)
        races = races & (self.words[places] != words)
        self.words[places] = words
        several = several | self._stamp(self.writers, places, stamps, several)
        return races | (several & (self.words[places] != words))

    def races_of_atomic_read(self, places: Any, stamps: Any) -> Any:
        """Return where another thread wrote otherwise than by an atomic update, with nothing between.

        Args:
            places: The places of the words.
            stamps: The stamps of the threads.
        """
        if self.writers is None:
            return np.zeros(len(places), bool)
        old = self.writers[places]
        return self._unordered(np.where(old & _ANY == _ANY, 0, old), stamps)

    def note_atomic(self, places: Any, stamps: Any) -> Any:
        """Record atomic updates; return where another thread accessed the element otherwise with nothing between."""
        assert self.writers is not None
        old = self.writers[places]
        races = self._unordered(np.where(old & _ANY == _ANY, 0, old), stamps)
        if self._readers is not None:
            races = races | self._unordered(self._readers[places], stamps)
        self.writers[places] = stamps | _ANY
        return races

    def overwrite(self, places: Any, words: Any, stamps: Any) -> Any:
        """Write words as atomic updates, the last thread last; return where `note_atomic` finds a race.

        Args:
            places: The places of the words.
            words: The values as bits.
            stamps: The stamps of the threads.
        """
        races = self.note_atomic(places, stamps)
        self.words[places] = words
        return races

    def _stamp(self, table: Any, places: Any, stamps: Any, several: Any) -> Any:
        """Stamp elements; those that several threads accessed get a stamp of no thread. Return which."""
        table[places] = stamps
        several = several | (table[places] != stamps)
        if several.any():
            table[places[several]] = stamps[several] | _ANY
        return several


@frozen(eq=False)
class Buffer:
    """A tensor: memory under a shape.

    Args:
        memory: The words.
        type_: The type of an element.
        shape: The sizes of the dimensions.
        layout: The dimensions, the one that varies fastest in memory first; nothing for row-major order.
    """

    memory: Memory
    type_: Attribute
    shape: tuple[int, ...]
    layout: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of elements that one thread can reach."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def strides(self) -> Sequence[int]:
        """The distance of neighbours along each dimension, in elements."""
        distances, step = [0] * len(self.shape), 1
        for number in self.layout or range(len(self.shape) - 1, -1, -1):
            distances[number] = step
            step *= self.shape[number]
        return distances

    def viewed(self, type_: builtin.TensorType[Attribute]) -> Buffer:
        """Return the same memory under the shape of another type."""
        return Buffer(self.memory, type_.element_type, tuple(type_.get_shape()), layout_of_type(type_))


@frozen(eq=False)
class Pointer:
    """A place in a buffer.

    Args:
        buffer: The buffer.
        offset: The number of bytes before the place, of all threads or of each.
    """

    buffer: Buffer
    offset: Any


Value = Array | Buffer | Pointer
