"""The part of a tensor that each device holds."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.errors import OptionError, UnsupportedError
from shardy_py.ir import Program

REGISTRY = sdy.Registry.of([])


def program(*shape: int | None, sharding: str) -> Program:
    """Return a program with one argument over two axes."""
    builder = sdy.Builder(mesh={"a": 2, "b": 2})
    with builder.function("main", [sdy.tensor(*shape)]) as (x,):
        builder.shard(x, sharding)
        builder.return_(x)
    return builder.build()


def test_each_device_has_a_part() -> None:
    """Devices are numbered by the axes of the mesh, the last one fastest."""
    result = sdy.propagate(program(8, 4, sharding='[{"b"}, {"a"}]'), registry=REGISTRY)
    assert result.devices("arg0") == (
        (slice(0, 4), slice(0, 2)),
        (slice(4, 8), slice(0, 2)),
        (slice(0, 4), slice(2, 4)),
        (slice(4, 8), slice(2, 4)),
    )


def test_devices_share_parts() -> None:
    """Devices along an axis that a sharding does not have hold the same part."""
    result = sdy.propagate(program(8, sharding='[{"a"}]'), registry=REGISTRY)
    assert result.devices(0) == ((slice(0, 4),), (slice(0, 4),), (slice(4, 8),), (slice(4, 8),))


def test_the_last_part_is_shorter() -> None:
    """Padding is no part of a tensor; a device may have none of it."""
    result = sdy.propagate(program(5, sharding='[{"a", "b"}]'), registry=REGISTRY, keep_uneven_shardings=True)
    assert result.devices(0) == ((slice(0, 2),), (slice(2, 4),), (slice(4, 5),), (slice(5, 5),))


def test_what_has_no_parts_is_refused() -> None:
    """Unknown sizes and unknown values are errors."""
    result = sdy.propagate(program(None, sharding='[{"a"}]'), registry=REGISTRY)
    with pytest.raises(UnsupportedError, match=r"parts of a tensor<\?xf32>"):
        result.devices("arg0")
    with pytest.raises(OptionError, match="no value"):
        result.devices("nothing")
