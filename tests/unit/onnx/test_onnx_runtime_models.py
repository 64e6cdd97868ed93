"""Models as onnxruntime's quantizer and optimizer write them run on devices as on one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx", reason="models are made by the package onnx: pip install 'shardy_py[onnx]'")
pytest.importorskip("onnxruntime", reason="models are run by onnxruntime: pip install 'shardy_py[onnx]'")

import onnx
import onnxruntime
from onnxruntime import quantization

import shardy_py as sdy
from shardy_py.errors import UnsupportedError
from tests.unit.onnx.example_models import MODELS
from tests.unit.onnx.onnx_models import ModelBuilder, assert_runs_sharded, random_inputs


class _Samples(quantization.CalibrationDataReader):  # type: ignore[misc]
    """Two random inputs, by which ranges are measured."""

    def __init__(self, model: Any) -> None:
        self._samples = iter([random_inputs(model, seed) for seed in range(2)])

    def get_next(self) -> Any:
        return next(self._samples, None)


def _statically(source: Path, target: Path) -> None:
    operators = quantization.QuantFormat.QOperator
    quantization.quantize_static(source, target, _Samples(onnx.load(source)), quant_format=operators)


def _dynamically(source: Path, target: Path) -> None:
    quantization.quantize_dynamic(source, target)


def _optimized(source: Path, target: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


@pytest.mark.slow
@pytest.mark.parametrize("rewrite", [_statically, _dynamically, _optimized])
@pytest.mark.parametrize(
    "name", ["transformer", "residual_network", "detection_head", "mobile_network", "recurrent", "early_exit"]
)
def test_a_rewritten_model_runs_on_devices(name: str, rewrite: Callable[[Path, Path], None], tmp_path: Path) -> None:
    """All nodes have rules, and local models compute what one device computes."""
    make, ways = MODELS[name]
    paths = tmp_path / "model.onnx", tmp_path / "rewritten.onnx"
    onnx.save(make(), paths[0])
    rewrite(*paths)
    model = onnx.load(paths[1])
    inputs = {info.name for info in model.graph.input}
    for mesh in ({"d": 2}, {"d": 4, "m": 2}):
        for way in ways:
            named = {argument: [a if a in mesh else None for a in axes] for argument, axes in way.items()}
            shardings = {argument: axes for argument, axes in named.items() if argument in inputs}
            assert_runs_sharded(model, mesh, shardings, rtol=1e-3)
    assert sdy.propagate(model, {"d": 2}).coverage.is_complete


def test_a_type_that_nobody_knows_is_an_error() -> None:
    """The error names the operator, and says how to give the type."""
    b = ModelBuilder(("x", (4, 8)))
    model = b.build(b.node("Relu", b.node("Unheard", "x", domain="com.microsoft")))
    with pytest.raises(UnsupportedError, match=r"shape of the tensor t0_0, a result of com\.microsoft\.Unheard"):
        sdy.propagate(model, {"d": 2})
    type_ = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [4, 8])
    model.graph.value_info.append(onnx.helper.make_value_info("t0_0", type_))
    assert sdy.propagate(model, {"d": 2}).coverage.missing[0].name == "onnx.com.microsoft.Unheard"
