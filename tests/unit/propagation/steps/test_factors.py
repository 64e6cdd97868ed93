"""Compatible axes, and conflicts within and across factors."""

from __future__ import annotations

import pytest

from shardy_py.propagation.steps.factors import (
    Direction,
    compatible_major_axes,
    expand,
    factors_with_axes,
    prefix_across_factors,
    prefix_within_factor,
    truncate_by_conflicts,
)
from shardy_py.sharding.axes import AxisRef, SubAxis
from tests.unit.propagation.projected import ADD, MATMUL, MESH, context_of, project_texts, text_of

A, B, C = AxisRef("a"), AxisRef("b"), AxisRef("c")


@pytest.mark.parametrize(
    ("direction", "operand", "result", "expected"),
    [
        (Direction.NONE, '{"a", ?}', '{"a", ?}', ""),
        (Direction.FORWARD, '{"a", "b", ?}', '{"a", ?}', "a b"),
        (Direction.FORWARD, '{"a", ?}', '{"a", "b", ?}', "a"),
        (Direction.BACKWARD, '{"a", ?}', '{"a", "b", ?}', "a b"),
        (Direction.BOTH, '{"a", ?}', '{"a", "b", ?}', "a b"),
        (Direction.BOTH, '{"a", "c", ?}', '{"a", "b", ?}', "a"),
        (Direction.FORWARD, '{"a", "c", ?}', '{"a", "b", ?}', "a"),
    ],
)
def test_only_sources_add_axes(direction: Direction, operand: str, result: str, expected: str) -> None:
    """The longest axes of the source side count; the other side may only shorten them by a conflict."""
    _, projection = project_texts("<([i])->([i]) {i=64}>", operand, result)
    assert text_of(compatible_major_axes(projection, 0, int(direction))) == expected


def test_backward_takes_nothing_from_operands() -> None:
    """An axis of an operand alone does not propagate backward."""
    _, projection = project_texts(ADD, '{"a", ?}, {?}', "{?}, {?}", "{?}, {?}")
    assert compatible_major_axes(projection, 0, int(Direction.BACKWARD)) == ()
    assert compatible_major_axes(projection, 0, int(Direction.FORWARD)) == (A,)


def test_sub_axes_agree_up_to_the_shorter_one() -> None:
    """A part of an axis is the start of the whole, so that the tensors agree on the whole."""
    _, projection = project_texts("<([i])->([i]) {i=64}>", '{"c":(1)2, ?}', '{"c", ?}')
    assert compatible_major_axes(projection, 0, int(Direction.BOTH)) == (C,)
    _, projection = project_texts("<([i])->([i]) {i=64}>", '{"c":(1)2, "a", ?}', '{"c", ?}')
    assert compatible_major_axes(projection, 0, int(Direction.BOTH)) == (AxisRef("c", SubAxis(1, 2)),)


def test_factors_without_axes_are_left_out() -> None:
    """Nothing can propagate along a factor without an axis on any tensor."""
    _, projection = project_texts(MATMUL, '{?}, {"a", ?}', "{?}, {?}", "{?}, {?}")
    assert factors_with_axes(projection) == [2]


def test_an_axis_of_another_factor_is_not_available() -> None:
    """Across factors, a tensor gives up an axis, or the part of it, that another dimension uses."""
    _, projection = project_texts(ADD, '{?}, {"c":(2)2, ?}', "{?}, {?}", "{?}, {?}")
    tensor = projection.tensors[0]
    assert prefix_across_factors(C, tensor, 0) == AxisRef("c", SubAxis(1, 2))
    assert prefix_across_factors(AxisRef("c", SubAxis(2, 2)), tensor, 0) is None
    assert prefix_across_factors(C, tensor, 1) == C


@pytest.mark.parametrize(
    ("dims", "expected"), [("{?}", A), ("{}", None), ('{"a"}', A), ('[{?}], replicated={"a"}', None)]
)
def test_a_factor_takes_an_axis_where_it_is_open(dims: str, expected: AxisRef | None) -> None:
    """A closed factor keeps the axes that it has; replicated axes are never available."""
    _, projection = project_texts("<([i])->([i]) {i=8}>", dims, None)
    tensor = projection.tensors[0]
    assert prefix_within_factor(A, tensor, tensor.factors[0], 1, 8, MESH) == expected


@pytest.mark.parametrize(("before", "expected"), [(1, C), (2, AxisRef("c", SubAxis(1, 2))), (4, None), (3, None)])
def test_a_factor_that_is_not_minor_most_takes_what_divides_it(before: int, expected: AxisRef | None) -> None:
    """Of size 4, behind so many shards, a major factor takes the part of an axis of size 4 that divides the rest."""
    _, projection = project_texts("<([ij])->([i, j]) {i=4, j=8}>", "{?}", "{?}, {?}")
    tensor = projection.tensors[0]
    assert prefix_within_factor(C, tensor, tensor.factors[0], before, 4, MESH) == expected


def test_axes_end_with_the_first_that_is_shortened() -> None:
    """Behind an axis that was left out or shortened none follows; sizes of the axes before are multiplied."""
    rule, _ = project_texts(ADD, None, None, None)
    sizes: list[int] = []

    def remove(axis: AxisRef, prev_sharded_size: int) -> AxisRef | None:
        sizes.append(prev_sharded_size)
        return AxisRef("c", SubAxis(1, 2)) if axis == C else axis

    assert text_of(truncate_by_conflicts((A, C, B), remove, context_of(rule))) == "a c:(1)2"
    assert sizes == [1, 2]
    assert text_of(truncate_by_conflicts((A, C, B), remove, context_of(rule, conservative=True))) == "a"
    assert truncate_by_conflicts((A, B), lambda axis, _: None, context_of(rule)) == ()


def test_a_tensor_is_expanded_by_longer_axes_only() -> None:
    """Axes that do not begin with those of the tensor, or are no longer, change nothing."""
    _, projection = project_texts("<([i])->([i]) {i=64}>", '{"a", ?}', None)
    tensor = projection.tensors[0]
    assert [expand(tensor, 0, axes) for axes in ((A,), (B, C), (), (A, B))] == [False, False, False, True]
    assert tensor.factors[0].axes == (A, B)
    assert not expand(tensor, 1, (C,))
