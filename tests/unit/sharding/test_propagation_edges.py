"""The vocabulary of propagation edges."""

from __future__ import annotations

import pytest

from shardy_py.errors import ParseError
from shardy_py.sharding.axes import AxisRef, SubAxis
from shardy_py.sharding.parse import format_attribute, parse_attribute
from shardy_py.sharding.propagation_edges import (
    AxisToPropagationDetails,
    EdgeValueRef,
    PropagationEdges,
    PropagationOneStep,
)

TEXT = '#sdy.propagation_edges<[{step-2 = [{"y":(1)2 = operand-1 -> [operand-0, result-0]}]}, {step-12 = []}]>'
VALUE = PropagationEdges(
    (
        PropagationOneStep(
            2,
            (
                AxisToPropagationDetails(
                    AxisRef("y", SubAxis(1, 2)),
                    EdgeValueRef("operand", 1),
                    (EdgeValueRef("operand", 0), EdgeValueRef("result", 0)),
                ),
            ),
        ),
        PropagationOneStep(12, ()),
    )
)


def test_text_and_value_are_inverse() -> None:
    """Parsing gives the value, printing gives the text."""
    assert parse_attribute(TEXT) == VALUE
    assert format_attribute(VALUE) == TEXT


def test_white_space_does_not_matter() -> None:
    """Dashes may stand apart from their numbers, and arrows next to them."""
    assert parse_attribute(TEXT.replace("step-2", "step - 2").replace(" -> ", "->")) == VALUE


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("step-2", "step2", "'step'"), ("operand-1", "value-1", "'operand'"), ("result-0", "result", "'-'")],
)
def test_a_wrong_part_is_named(old: str, new: str, expected: str) -> None:
    """The error says what was expected where."""
    with pytest.raises(ParseError, match=expected):
        parse_attribute(TEXT.replace(old, new))
