"""Reshards that XLA's partitioner carries out by a gather and a slice."""

from __future__ import annotations

import pytest

from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding
from shardy_py.transforms.finish.split_partitioner_reshards import sharding_between

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
    found = sharding_between(_sharding(before), _sharding(after), MESH)
    assert found == (None if between is None else _sharding(between))
