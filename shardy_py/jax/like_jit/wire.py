"""The wire format of protocol buffers: numbered fields of messages, read and written without their definitions.

See https://protobuf.dev/programming-guides/encoding: a field is a tag (its number and the type of what follows), and
then a varint, eight bytes, four bytes, or a length and that many bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Field = tuple[int, int | bytes, int, int]
"""The number of a field, its value (an integer for a varint), and where the field begins and ends."""

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5


def read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return the integer at an offset, and the offset behind it."""
    value = data[offset]
    offset += 1
    if value < 128:
        return value, offset
    value &= 127
    shift = 7
    while True:
        part = data[offset]
        offset += 1
        value |= (part & 127) << shift
        if part < 128:
            return value, offset
        shift += 7


def read_fields(data: bytes) -> Iterator[Field]:
    """Yield the fields of a message in their order.

    Raises:
        ValueError: the bytes are not a message.
    """
    offset, size = 0, len(data)
    while offset < size:
        start = offset
        tag, offset = read_varint(data, offset)
        kind = tag & 7
        value: int | bytes
        if kind == _BYTES:
            length, offset = read_varint(data, offset)
            end = offset + length
            value = data[offset:end]
        elif kind == _VARINT:
            value, end = read_varint(data, offset)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            end = offset + (8 if kind == _EIGHT_BYTES else 4)
            value = data[offset:end]
        else:
            raise ValueError(f"expected the tag of a field at byte {start}, got {tag}")
        if end > size:
            raise ValueError(f"the field at byte {start} ends behind the message")
        yield tag >> 3, value, start, end
        offset = end


def read_integers(value: int | bytes) -> list[int]:
    """Return the integers of a field that may be packed."""
    if isinstance(value, int):
        return [value]
    integers = []
    offset = 0
    while offset < len(value):
        integer, offset = read_varint(value, offset)
        integers.append(integer)
    return integers


def write_varint(value: int) -> bytes:
    """Return an integer as a varint."""
    if value < 128:
        return value.to_bytes(1, "little")
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def write_integer(number: int, value: int) -> bytes:
    """Return a field with an integer."""
    return write_varint(number << 3 | _VARINT) + write_varint(value)


def write_bytes(number: int, value: bytes) -> bytes:
    """Return a field with bytes: a text, or a message."""
    return write_varint(number << 3 | _BYTES) + write_varint(len(value)) + value


def write_integers(number: int, values: Iterable[int]) -> bytes:
    """Return a packed field with integers, nothing where there are none."""
    packed = b"".join(map(write_varint, values))
    return write_bytes(number, packed) if packed else b""
