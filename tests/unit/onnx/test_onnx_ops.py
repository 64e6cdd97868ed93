"""Every operator of ONNX computes on shards, however its operands are sharded, what it computes on whole tensors."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx", reason="models are made by the package onnx: pip install 'shardy_py[onnx]'")
pytest.importorskip("onnxruntime", reason="models are run by onnxruntime: pip install 'shardy_py[onnx]'")

import shardy_py as sdy
from shardy_py.ir.graph.shardings import entry_arguments
from tests.unit.onnx.microsoft_cases import CASES as MICROSOFT_CASES
from tests.unit.onnx.onnx_models import assert_runs_sharded
from tests.unit.onnx.op_cases import CASES as ONNX_CASES

MESH = {"d": 2}
CASES = {**ONNX_CASES, **{f"com.microsoft.{name}": case for name, case in MICROSOFT_CASES.items()}}


def shardings(model: Any) -> list[dict[str, Any]]:
    """Return all ways to shard one dimension of one argument over both devices, and one for all first dimensions."""
    program = sdy.propagate(model, MESH).program
    names, arguments = program.origin.argument_names, entry_arguments(program.functions["main"])
    ways: list[dict[str, Any]] = []
    for name, value in zip(names, arguments, strict=True):
        for dim, size in enumerate(value.shape):
            if size % 2 == 0:
                ways.append({name: [None] * dim + ["d"]})
    return ways


@pytest.mark.parametrize("name", CASES)
def test_an_operator_runs_on_shards(name: str) -> None:
    """Each sharding of each operand gives the results of one device, whether or not something is gathered."""
    model = CASES[name]()
    ways = shardings(model)
    assert ways
    for way in ways:
        assert_runs_sharded(model, MESH, way)


@pytest.mark.parametrize("name", CASES)
def test_an_operator_has_a_rule(name: str) -> None:
    """No operator of the cases is left without a rule."""
    assert sdy.propagate(CASES[name](), MESH).coverage.missing == ()
