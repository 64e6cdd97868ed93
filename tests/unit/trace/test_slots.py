"""Dimensions of slots that have a factor."""

from __future__ import annotations

from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.trace.slots import RuleIndex, axes_of, overlapping

SLOTS = (7, -1, 9)
INDEX = RuleIndex(OpShardingRule((2, 3, 4), (((0,), (2,)), ((2,), (1,))), (((0,), (1, 2)),)))


def test_a_factor_belongs_to_one_dimension_of_a_tensor() -> None:
    """Also where the dimension has several factors; tensors without a slot have none."""
    assert INDEX.slot_dim(SLOTS, 0, 2) == (7, 1)
    assert INDEX.slot_dim(SLOTS, 2, 2) == (9, 1)
    assert INDEX.slot_dim(SLOTS, 0, 1) is None
    assert INDEX.slot_dim(SLOTS, 1, 1) is None
    assert list(INDEX.slot_dims(SLOTS, 2)) == [(7, 1), (9, 1)]


def test_axes_of_a_dimension_and_those_that_overlap() -> None:
    """A sub-axis overlaps the axis it is a part of; without a sharding there are no axes."""
    sharding = parse_tensor_sharding('<@mesh, [{"a", "b":(1)2}, {}]>')
    assert list(map(str, axes_of(sharding, 0))) == ['"a"', '"b":(1)2']
    assert axes_of(None, 0) == ()
    assert overlapping(AxisRef("b"), axes_of(sharding, 0)) == (AxisRef("b", SubAxis(1, 2)),)
