"""Models of ONNX for tests, and their comparison on devices with one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import shardy_py as sdy
from shardy_py.onnx.load import load

OPSET = 21


class ModelBuilder:
    """A model that is written node by node; tensors are known by their names."""

    def __init__(self, *inputs: tuple[str, Sequence[int | str]], seed: int = 0, opset: int = OPSET) -> None:
        self._infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs]
        self._nodes: list[Any] = []
        self._tensors: list[Any] = []
        self._random = np.random.default_rng(seed)
        self._opset = opset

    def weight(self, *shape: int, scale: float = 0.5) -> str:
        """Return a new initializer of random numbers."""
        return self.tensor((self._random.standard_normal(shape) * scale).astype(np.float32))

    def tensor(self, array: Any) -> str:
        """Return a new initializer."""
        name = f"w{len(self._tensors)}"
        self._tensors.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *numbers: int) -> str:
        """Return a new initializer of integers."""
        return self.tensor(np.array(numbers, np.int64))

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node and return the name of its result, or the names of several."""
        names = [f"t{len(self._nodes)}_{number}" for number in range(outputs)]
        self._nodes.append(helper.make_node(kind, inputs, names, name=f"{kind}{len(self._nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def build(self, *outputs: str) -> Any:
        """Return the model."""
        infos = [helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
        graph = helper.make_graph(self._nodes, "main", self._infos, infos, initializer=self._tensors)
        opsets = [helper.make_opsetid("", self._opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return onnx.shape_inference.infer_shapes(model)


def random_inputs(model: Any, seed: int = 0) -> dict[str, Any]:
    """Return random arrays for the inputs of a model."""
    generator, arrays = np.random.default_rng(seed), {}
    for info in model.graph.input:
        type_ = info.type.tensor_type
        shape = [dim.dim_value for dim in type_.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(type_.elem_type)
        is_float = np.dtype(dtype).kind == "f"
        numbers = generator.standard_normal(shape) if is_float else generator.integers(0, 4, shape)
        arrays[info.name] = np.asarray(numbers, dtype)
    return arrays


def run_whole(model: Any, inputs: Mapping[str, Any]) -> list[Any]:
    """Return the results of a model on one device."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[Any] = session.run(None, dict(inputs))
    return results


def assert_runs_sharded(
    model: Any, mesh: Mapping[str, int], shardings: Mapping[str, Any], *, rtol: float = 2e-4, **options: Any
) -> Any:
    """Assert that the local models of all devices compute what the model computes on one; return the local program."""
    result = sdy.propagate(model, dict(mesh), in_shardings=dict(shardings), explicit_collectives=True, **options)
    local = result.local()
    inputs = random_inputs(model)
    tensors = {item.name: onnx.numpy_helper.to_array(item) for item in load(model).graph.initializer}
    names = result.program.origin.argument_names
    actual = local.run(*[inputs.get(name, tensors.get(name)) for name in names])
    for number, (array, expected) in enumerate(zip(actual, run_whole(model, inputs), strict=True)):
        np.testing.assert_allclose(array, expected, rtol=rtol, atol=rtol, err_msg=f"result {number}")
    return local
