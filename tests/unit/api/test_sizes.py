"""Bytes on one device."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.api.summary import local_shape, tensor_bytes
from shardy_py.ir.graph.types import OpaqueType, tensor
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding

MESH = Mesh.of(a=4, b=3)


@given(size=st.integers(1, 100), other=st.integers(1, 100))
def test_shards_cover_the_tensor(size: int, other: int) -> None:
    """The largest shard times the number of shards covers each dimension, and no smaller shard would."""
    sharding = parse_tensor_sharding('<@mesh, [{"a"}, {"b"}]>')
    local = local_shape((size, other), sharding, MESH)
    for whole, part, count in zip((size, other), local, (4, 3), strict=True):
        assert part * count >= whole > (part - 1) * count


def test_bytes_are_rounded_up_once() -> None:
    """Sub-byte elements are packed: bits are added up before they become bytes."""
    assert tensor_bytes(tensor(3, 3, dtype="i4")) == 5
    assert tensor_bytes(tensor(6, 3, dtype="i4"), parse_tensor_sharding('<@mesh, [{"a"}, {}]>'), MESH) == 3


@pytest.mark.parametrize("type_", [OpaqueType("!stablehlo.token"), tensor(None, 2), tensor(2, dtype="!toy.t")])
def test_unknown_sizes(type_: object) -> None:
    """A type whose size is not known has no number of bytes."""
    assert tensor_bytes(type_) is None  # type: ignore[arg-type]


def test_a_single_device_holds_all_of_a_tensor() -> None:
    """A sharding over one device has no dimensions, and divides nothing."""
    sharding, mesh = parse_tensor_sharding("<@one, []>"), Mesh(device_ids=(3,))
    assert tensor_bytes(tensor(8, 4), sharding, mesh) == 128
