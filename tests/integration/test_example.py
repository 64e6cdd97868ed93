"""The training step that the README propagates."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import shardy_py as sdy

pytest.importorskip("jaxlib", reason="the example is an MLIR module")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXAMPLE = EXAMPLES / "gpt_train.mlir"


@pytest.fixture(scope="module")
def result() -> sdy.Result:
    """The example, propagated."""
    return sdy.propagate(EXAMPLE)


def test_new_parameters_are_sharded_as_the_old_ones(result: sdy.Result) -> None:
    """Adam keeps the shardings: each new parameter and moment has the axes of the one it replaces."""

    def axes(sharding: sdy.TensorSharding | None) -> list[tuple[sdy.AxisRef, ...]]:
        # Nothing propagates from a replicated scale to its successor: that one has no sharding at all.
        return [dim.axes for dim in sharding.dim_shardings if dim.axes] if sharding else []

    # Parameters and both moments; the step count, the batch and the loss follow.
    count = (len(result.arguments) - 3) // 3 * 3
    assert count == 57
    for before, after in zip(result.arguments[:count], result.results[:count], strict=True):
        assert axes(after) == axes(before)


def test_all_ops_have_rules(result: sdy.Result) -> None:
    """No op of the training step lacks a rule."""
    assert result.coverage.is_complete


def test_script_makes_the_module(result: sdy.Result, tmp_path: Path) -> None:
    """The script beside the module writes one with the same inputs, which propagates to the same outputs."""
    pytest.importorskip("jax", reason="the script lowers a JAX function")
    spec = importlib.util.spec_from_file_location("make_gpt_train", EXAMPLES / "make_gpt_train.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path / "made.mlir")
    written = sdy.propagate(tmp_path / "made.mlir")
    assert [written.arguments, written.results] == [result.arguments, result.results]
