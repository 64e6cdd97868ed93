"""Places where one more visit would change a sharding."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py.explain.answer.unsettled import NotSettled, find_unsettled
from tests.unit.explain.programs import product


def test_a_settled_run_has_no_such_place() -> None:
    """Every step sees what it saw in its last visit."""
    trace = product()
    assert list(find_unsettled(trace, trace.labels)) == []


def test_a_place_is_one_line() -> None:
    """With the place of the op, where it is known."""
    one = NotSettled("toy.dot %0", "/x/model.py:7:8", "%0", 0, '"a"', "x", 1, "i")
    assert str(one) == '%0 dim 0 <- x dim 1 "a": through toy.dot %0 at model.py:7:8, factor i'
