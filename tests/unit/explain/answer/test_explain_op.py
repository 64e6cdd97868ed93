"""Explanations of ops."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py import OptionError, Result
from tests.unit.explain.explained import NAMED, traced


@pytest.fixture(scope="module")
def result() -> Result:
    """A traced run."""
    return traced(NAMED)


def test_an_op_is_explained_with_its_factors_and_what_went_through(result: Result) -> None:
    """Rule, kinds, directions level by level, moves and refusals."""
    one = result.explain_op("model.py:12")
    assert one.op == "stablehlo.dot_general %0"
    assert [(factor.factor, factor.kind) for factor in one.factors] == [
        ("i", "pass_through"),
        ("j", "pass_through"),
        ("k", "reduction"),
    ]
    assert one.factors[2].directions == ("none", "none", "none", "both", "both")
    assert one.factors[2].places == ("params['w'] dim 1", "%arg1 dim 0")
    moves = [(move.value, move.dimension, move.source, move.axis) for move in one.accepted]
    assert moves == [("%0", 0, "params['w']", '"a"'), ("params['w']", 1, "%arg1", '"b"')]
    assert {reason.code for reason in one.refused} == {"lost", "overlap"}
    assert "directions by level: none, none, none, both, both" in str(one)


def test_an_op_without_a_rule_cannot_be_explained(result: Result) -> None:
    """An argument is made by no op."""
    with pytest.raises(OptionError) as error:
        result.explain_op("%arg0")
    assert error.value.diagnostics[0].code == "unknown-op"
