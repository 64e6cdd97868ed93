"""What a sharding is in the terms of JAX."""

from __future__ import annotations

import pytest

from shardy_py.errors import UnsupportedError
from shardy_py.frontends.jax import _partition_spec, _parts_of_axes
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.parse import parse_tensor_sharding


def spec(*texts: str) -> list[object]:
    """Return the PartitionSpec of the first sharding, where all of them are at the interface."""
    shardings = [parse_tensor_sharding(text) for text in texts]
    return _partition_spec(shardings[0], _parts_of_axes(Mesh.of(a=8, b=2), shardings))


def test_full_axes() -> None:
    """Full axes keep their names."""
    assert spec('<@mesh, [{"a", "b"}, {}, {?}]>') == [("a", "b"), None, None]
    assert spec('<@mesh, [{"b"}]>') == ["b"]
    assert _partition_spec(None, {}) == []


def test_sub_axes() -> None:
    """An axis of which parts are used is several axes of JAX's mesh, wherever it is used."""
    part, whole = '<@mesh, [{"a":(2)2}]>', '<@mesh, [{"a"}]>'
    assert spec(part, whole) == ["a:(2)2"]
    assert spec(whole, part) == [("a:(1)2", "a:(2)2", "a:(4)2")]


def test_sub_axes_that_do_not_fit_together() -> None:
    """Parts that overlap without one being in the other have no common parts."""
    with pytest.raises(UnsupportedError, match="do not fit together"):
        _parts_of_axes(Mesh.of(a=12), [parse_tensor_sharding(f'<@mesh, [{{"a":(1){size}}}]>') for size in (2, 3)])
