"""TOSA: modules in its usual format are read, and compute on devices what they compute on whole tensors."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="MLIR reads the modules")

import shardy_py as sdy
from shardy_py.testing import run_sharded
from tests.unit.dialects.tosa.modules import FUNCTIONS, MODULES


@pytest.mark.parametrize("name", MODULES)
def test_a_module_runs_on_devices(name: str) -> None:
    """Each module gives on four devices what it gives on whole tensors, and no op lacks a rule."""
    text, shardings = MODULES[name]
    assert sdy.propagate(text, {"d": 2, "m": 2}).coverage.is_complete
    run = run_sharded(text, FUNCTIONS, {"d": 2, "m": 2}, in_shardings=shardings)
    assert run.ok, run.difference
    assert run.gathered == ()


def test_columns_and_rows_need_one_sum() -> None:
    """A product by columns, then by rows, sends one sum, also behind a reshape with a shape of its own."""
    text, shardings = MODULES["perceptron"]
    result = sdy.propagate(text, {"d": 2, "m": 2}, in_shardings=shardings, explicit_collectives=True)
    assert result.text.count("sdy.all_reduce") == 1
    assert str(result.results[0]) == '<@mesh, [{"d"}, {}, {}]>'
