"""Reader of the structure of a native module, from its bytecode.

MLIR's bindings make a Python object of every operand, result and attribute one asks for. Bytecode has numbers instead,
and MLIR writes it faster than the bindings give the types of the results. Names, attributes and types have numbers of
their own, the same wherever they are the same, so that the bindings need be asked once for each.

The format: https://mlir.llvm.org/docs/BytecodeFormat/. Of its versions the first is the simplest: all attributes of an
op are one dictionary, and regions are no sections of their own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import accumulate
from types import SimpleNamespace

from jaxlib.mlir import ir

NO_ATTRIBUTES = -1
_VERSION = 0
_HEADER = b"ML\xefR\x01"
"""The magic number, and the version as a number."""
_IR_SECTION = 4
_ALIGNED = 0x80
_MAX_HEAD = 256
"""More bytes than there are before the first section, or before what is in one."""
_SMALL = 1_000_000
"""The size of bytecode that is joined, as finding places in chunks takes longer."""
_AT_ONCE = 500
"""Number of ops that are read before the first of them is used; more take memory."""
_HAS_ATTRIBUTES, _HAS_RESULTS, _HAS_OPERANDS, _HAS_SUCCESSORS, _HAS_REGIONS = 1, 2, 4, 8, 16
_ONE, _TWO = 3, 5
"""The numbers one and two as bytes."""
_TWO_BYTES = 2
"""The lowest two bits of a number that has two bytes."""
_LONG = 255
_SHORT = bytes([byte >> 1 if byte & 1 else _LONG for byte in range(256)])
"""The first byte of a number to the number, if it has no other bytes."""
_SIZE = bytes([9] + [(byte & -byte).bit_length() for byte in range(1, 256)])
"""The first byte of a number to how many bytes it has."""


OpRecord = tuple[int, int, Hashable, Sequence[int], int]
"""An op as the bytecode has it:

- the number of its name,
- the number of the dictionary of its attributes, or `NO_ATTRIBUTES`,
- the numbers of the types of its results; hashable, and equal where all of them are,
- the numbers of its operands,
- twice the number of its regions, and one more if they see no values from around them.
"""


class BytecodeReader:
    """Reads the ops of a module one after the other, each before those in its regions.

    The values of a region are numbered in their order: those of a block are its arguments and the results of its ops.
    The numbers begin where those of the region around it end, or at zero where it sees none of its values.

    Attributes:
        tables: The bytes that say what the numbers of names, attributes and types mean; empty where they are many.
    """

    __slots__ = ("_at", "_data", "_short", "tables")

    def __init__(self, module: ir.Module) -> None:
        chunks: list[bytes] = []
        module.operation.write_bytecode(SimpleNamespace(write=chunks.append), _VERSION)
        self._data, self.tables = _divide(chunks, _IR_SECTION)
        self._short = self._data.translate(_SHORT)
        self._at = 0

    def number(self) -> int:
        """Read a number."""
        number, self._at = read_number(self._data, self._at)
        return number

    def block(self) -> tuple[int, list[int]]:
        """Read how many ops a block has, and the numbers of the types of its arguments."""
        data, short = self._data, self._short
        header, at = read_number(data, self._at)
        types = []
        if header & 1:
            count, at = read_number(data, at)
            for _ in range(count):
                type_ = short[at]
                at += 1
                if type_ == _LONG:
                    type_, at = read_number(data, at - 1)
                types.append(type_)
                at += _SIZE[data[at]]  # The location is left out.
        self._at = at
        return header >> 1, types

    def ops(self, count: int) -> Iterator[OpRecord]:
        """Read some ops; the caller reads the regions of each before the next op."""
        while count:
            records, self._at = _read_ops(self._data, self._short, self._at, min(count, _AT_ONCE))
            count -= len(records)
            yield from records


def _read_ops(data: bytes, short: bytes, at: int, count: int) -> tuple[list[OpRecord], int]:
    """Read ops up to the first one with regions, which is the last one read.

    Args:
        data: The bytes.
        short: Each of them as a number of one byte, `_LONG` where it is none.
        at: Where the first op begins.
        count: How many to read at most.

    Returns:
        The ops, and where what follows them begins.
    """
    records: list[OpRecord] = []
    types: Hashable
    operands: Sequence[int]
    for _ in range(count):
        name = short[at]
        at += 1
        if name == _LONG:
            name, at = read_number(data, at - 1)
        mask = data[at]
        at += 1 + _SIZE[data[at + 1]]  # The location is left out.
        attributes, types, operands = NO_ATTRIBUTES, b"", b""
        if mask & _HAS_ATTRIBUTES:
            attributes = short[at]
            at += 1
            if attributes == _LONG:
                attributes, at = read_number(data, at - 1)
        if mask & _HAS_RESULTS:
            end = at + 1 + short[at]
            types = short[at + 1 : end]
            if short[at] == _LONG or _LONG in types:
                numbers, at = _numbers(data, at)
                types = tuple(numbers)
            else:
                at = end
        if mask & _HAS_OPERANDS:
            size, first = data[at], data[at + 1]
            # Most ops of a large function have one operand or two, with numbers of two bytes.
            if size == _ONE and first & 3 == _TWO_BYTES:
                operands = ((first | data[at + 2] << 8) >> 2,)
                at += 3
            elif size == _TWO and first & 3 == _TWO_BYTES and data[at + 3] & 3 == _TWO_BYTES:
                operands = (first | data[at + 2] << 8) >> 2, (data[at + 3] | data[at + 4] << 8) >> 2
                at += 5
            else:
                end = at + 1 + short[at]
                operands = short[at + 1 : end]
                if short[at] == _LONG or _LONG in operands:
                    operands, at = _numbers(data, at)
                else:
                    at = end
        if mask & _HAS_SUCCESSORS:
            _, at = _numbers(data, at)
        if mask & _HAS_REGIONS:
            regions, at = read_number(data, at)
            records.append((name, attributes, types, operands, regions))
            break
        records.append((name, attributes, types, operands, 0))
    return records, at


def _divide(chunks: list[bytes], wanted: int) -> tuple[bytes, bytes]:
    """Return the content of a section of bytecode that was written in chunks, and all else, empty if that is large."""
    size = sum(map(len, chunks))
    if size < _SMALL:
        data = b"".join(chunks)
        begin, end = _find_section(lambda begin, end: data[begin:end], wanted)
        return data[begin:end], data[:begin] + data[end:]
    starts = list(accumulate(map(len, chunks[:-1]), initial=0))

    def read(begin: int, end: int) -> bytes:
        # Large constants are chunks of their own, which are never joined with others.
        first, last = bisect_right(starts, begin) - 1, bisect_left(starts, end)
        places = zip(chunks[first:last], starts[first:last], strict=True)
        return b"".join([chunk[max(begin - start, 0) : end - start] for chunk, start in places])

    begin, end = _find_section(read, wanted)
    is_small = size - (end - begin) < _SMALL
    return read(begin, end), read(0, begin) + read(end, size) if is_small else b""


def _find_section(read: Callable[[int, int], bytes], wanted: int) -> tuple[int, int]:
    """Return where a section of bytecode begins and ends, of which a function returns the bytes between two places."""
    head = read(0, _MAX_HEAD)
    if not head.startswith(_HEADER):
        raise ValueError("MLIR wrote another version of bytecode than it was told to")
    # Then comes the name of who wrote it, which ends with a zero.
    at = head.index(0, len(_HEADER)) + 1
    while True:
        head = read(at, at + _MAX_HEAD)
        size, length = read_number(head, 1)
        begin = at + length
        if head[0] & _ALIGNED:
            alignment, length = read_number(head, length)
            begin = at + length
            begin += -begin % alignment
        if head[0] & ~_ALIGNED == wanted:
            return begin, begin + size
        at = begin + size


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number: its value, and where the next one begins."""
    byte = data[at]
    if byte & 1:
        return byte >> 1, at + 1
    size = _SIZE[byte]
    # The bytes of the value come with as many bits before it, or behind a byte of zeros.
    end = at + size
    if size == 9:
        return int.from_bytes(data[at + 1 : end], "little"), end
    return int.from_bytes(data[at:end], "little") >> size, end


def _numbers(data: bytes, at: int) -> tuple[list[int], int]:
    """Read a number and as many more."""
    count, at = _SHORT[data[at]], at + 1
    if count == _LONG:
        count, at = read_number(data, at - 1)
    numbers = []
    for _ in range(count):
        byte = data[at]
        if byte & 1:
            numbers.append(byte >> 1)
            at += 1
        elif byte & 2:
            numbers.append((byte | data[at + 1] << 8) >> 2)
            at += 2
        elif byte & 4:
            numbers.append((byte | data[at + 1] << 8 | data[at + 2] << 16) >> 3)
            at += 3
        else:
            number, at = read_number(data, at)
            numbers.append(number)
    return numbers, at
