"""Reshards that XLA's partitioner carries out by a gather and a slice, or on a whole tensor as its compiler warned."""

from __future__ import annotations

import pytest

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.finish.split_partitioner_reshards import (
    is_fully_rematerialized,
    sharding_between,
    sharding_between_steps,
)

MESH = Mesh((MeshAxis("a", 2), MeshAxis("b", 4), MeshAxis("c", 4)))


def _sharding(text):
    """Return a sharding with the axes of each dimension, such as "ab -"."""
    dims = [tuple(AxisRef(axis) for axis in dim if axis != "-") for dim in text.split()]
    return TensorSharding("mesh", tuple(map(DimensionSharding, dims)))


@pytest.mark.parametrize(
    ("before", "after", "between"),
    [
        ("a -", "- b", "- -"),
        ("ca -", "- c", "- -"),
        ("ab -", "a c", "a -"),
        # A gather alone, a slice alone, an all-to-all, a permutation.
        ("a b", "- b", None),
        ("- b", "a b", None),
        ("b -", "- b", None),
        ("b -", "- c", None),
        ("b -", "c -", None),
    ],
)
def test_a_gather_comes_first_where_one_dimension_loses_axes_and_another_gets_some(before, after, between):
    """Where a single collective leads to the target, there is nothing between."""
    actual = sharding_between(_sharding(before), _sharding(after), MESH)
    assert actual == (None if between is None else _sharding(between))


DATA_AND_MODEL = Mesh.of(data=4, model=2)


def sharding(dims: str):
    """Return a sharding over the mesh."""
    return parse_tensor_sharding(f"<@mesh, [{dims}]>")


@pytest.mark.parametrize(
    ("before", "after", "between"),
    [
        ('{"model"}, {}, {"data"}', '{}, {"data", "model"}, {}', '{}, {"model"}, {"data"}'),
        ('{"data"}, {"model"}, {}', '{}, {}, {"data", "model"}', '{}, {"model"}, {"data"}'),
    ],
)
def test_three_dimensions_change(before: str, after: str, between: str) -> None:
    """Where parts of two dimensions go to a third one, XLA replicates; one dimension at a time it exchanges parts."""
    assert is_fully_rematerialized(sharding(before), sharding(after), DATA_AND_MODEL)
    assert str(sharding_between_steps(sharding(before), sharding(after), DATA_AND_MODEL)) == f"<@mesh, [{between}]>"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"data"}, {"model"}', '{"model"}, {"data"}'),
        ('{"data"}, {"model"}', '{"data", "model"}, {}'),
        ('{"data", "model"}, {}', '{"data"}, {"model"}'),
        ('{"data"}, {}', '{}, {"data"}'),
        ('{"data"}, {}', '{"model"}, {}'),
        ('{"data"}, {}', "{}, {}"),
        ('{"data"}, {}', '{"data"}, {"model"}'),
    ],
)
def test_other_reshards(before: str, after: str) -> None:
    """Exchanges of dimensions, merging and splitting two of them, gathers and slices need no whole tensor."""
    assert not is_fully_rematerialized(sharding(before), sharding(after), DATA_AND_MODEL)


def test_estimates_tell_of_it() -> None:
    """The profile of XLA counts the gather, and says where it is, how large, and how to avoid it."""
    pytest.importorskip("jaxlib")
    from shardy_py import Session

    text = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%a: tensor<64x64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}, {"data"}]>})
    -> tensor<64x64x32xf32> {
  %0 = stablehlo.negate %a : tensor<64x64x32xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"data", "model"}, {}]> : tensor<64x64x32xf32>
  return %1 : tensor<64x64x32xf32>
}
"""
    cost = Session.open(text).evaluate(profile="xla-cpu", partitioner="xla").cost
    assert cost.communication_bytes.value == 64 * 64 * 32 * 4 * 7 / 8
    (note,) = [note for note in cost.notes if "full-rematerialization" in note]
    assert "note: XLA makes a tensor of 512.0 KiB whole on every device" in note
    assert 'constrain it to <@mesh, [{}, {"model"}, {"data"}]> in between' in note
    assert (
        Session.open(text).evaluate(profile="none", partitioner="xla").cost.communication_bytes.value
        < cost.communication_bytes.value
    )
