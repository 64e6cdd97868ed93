"""The wire format of protocol buffers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.jax.like_jit.wire import (
    read_fields,
    read_integers,
    read_varint,
    write_bytes,
    write_integer,
    write_integers,
    write_varint,
)


@given(st.integers(0, 2**64 - 1))
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    """Reading gives the integer back, and where it ends."""
    data = write_varint(value)
    assert read_varint(b"\xff" + data, 1) == (value, 1 + len(data))


def test_the_example_of_the_documentation() -> None:
    """150 in field 1, and a text in field 2, have the bytes that the documentation of the format shows."""
    assert write_integer(1, 150) == bytes.fromhex("089601")
    assert write_bytes(2, b"testing") == bytes.fromhex("120774657374696e67")


def test_fields_come_with_their_places() -> None:
    """Each field says where it begins and ends, so that others can be copied as they are."""
    data = write_integer(35, 7) + write_integers(36, [1, 300]) + b"\x15abcd" + b"\x19abcdefgh"
    fields = list(read_fields(data))
    assert [(number, data[start:end]) for number, _, start, end in fields] == [
        (35, write_integer(35, 7)),
        (36, write_integers(36, [1, 300])),
        (2, b"\x15abcd"),
        (3, b"\x19abcdefgh"),
    ]
    assert read_integers(fields[1][1]) == [1, 300]
    assert read_integers(fields[0][1]) == [7]
    assert write_integers(36, []) == b""


@pytest.mark.parametrize("data", [b"\x0b", b"\x12\x05ab", b"\x19abc"])
def test_what_is_no_message(data: bytes) -> None:
    """Groups, and fields that end behind the message, are refused."""
    with pytest.raises(ValueError, match="field at byte 0"):
        list(read_fields(data))
