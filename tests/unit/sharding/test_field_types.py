"""Shardings and meshes that callers make of the wrong parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardy_py as sdy
from shardy_py import AxisRef, DimensionSharding, Mesh, MeshAxis, SubAxis, TensorSharding
from shardy_py.sharding.field_types import field_problem

X = DimensionSharding((AxisRef("a"),))
TEXT = """
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  return %x : tensor<8x4xf32>
}"""

WRONG: list[tuple[Any, str]] = [
    (TensorSharding("mesh", (DimensionSharding(("a",)), X)), "axes of DimensionSharding is ('a',)"),  # type: ignore[arg-type]
    (TensorSharding("mesh", ("a", None)), "dim_shardings of TensorSharding is ('a', None)"),  # type: ignore[arg-type]
    (TensorSharding("mesh", [X, X]), "not a tuple of DimensionSharding"),  # type: ignore[arg-type]
    (TensorSharding(None, (X, X)), "mesh of TensorSharding is None, not a text or Mesh"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (X, DimensionSharding((), 1))), "is_closed of DimensionSharding is 1"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (X, DimensionSharding((), False, 1.5))), "priority of DimensionSharding is 1.5"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (DimensionSharding((AxisRef(0),)), X)), "name of AxisRef is 0, not a text"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (DimensionSharding((AxisRef("a", 2),)), X)), "sub_axis of AxisRef is 2"),  # type: ignore[arg-type]
    (TensorSharding("mesh", (X, X), (), ("b",)), "unreduced_axes of TensorSharding is ('b',)"),  # type: ignore[arg-type]
    (TensorSharding(Mesh.of(a=True), (X, X)), "size of MeshAxis is True, not an integer"),
]


@pytest.mark.parametrize(("sharding", "message"), WRONG)
def test_a_sharding_of_wrong_parts_is_an_error_where_it_is_given(sharding: Any, message: str) -> None:
    """The part is named for `propagate` and for a `Builder`, and nothing fails inside."""
    with pytest.raises(sdy.ShardyError) as error:
        sdy.propagate(TEXT, {"a": 2}, in_shardings={0: sharding})
    assert message in str(error.value)
    b = sdy.Builder(mesh={"a": 2})
    with b.function("main", [sdy.tensor(8, 4)]) as (x,):
        with pytest.raises(sdy.ShardyError) as error:
            b.shard(x, sharding)
        b.return_(x)
    assert message in str(error.value)


@pytest.mark.parametrize("axis", [MeshAxis("a", 2.0), MeshAxis(None, 2), MeshAxis("\ud800", 2)])  # type: ignore[arg-type]
def test_an_axis_of_wrong_parts_is_an_error(axis: MeshAxis) -> None:
    """A size that is no integer, and a name that is no text of Unicode, are refused with the mesh."""
    with pytest.raises(sdy.ShardyError, match="of MeshAxis is"):
        sdy.propagate(TEXT, Mesh((axis,)))


def test_right_parts_have_no_problem() -> None:
    """Sub-axes, priorities, inlined meshes and integers of numpy are of the right types."""
    mesh = Mesh((MeshAxis("a", np.int64(4)),))  # type: ignore[arg-type]
    dim = DimensionSharding((AxisRef("a", SubAxis(1, 2)),), is_closed=False, priority=1)
    assert field_problem(TensorSharding(mesh, (dim, X), reduction_op="max")) is None
