"""Functions that modules declare without a body: those of XLA's library run, others are refused by name and line."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import VerificationError
from shardy_py.kernels.device import H100
from shardy_py.kernels.opt.modules import launch_of_module, read_module
from shardy_py.kernels.opt.run_module import module_arguments, random_inputs, run_module
from shardy_py.kernels.opt.stages import parse_kernel_pipeline, run_passes

CALL = """func.func private @{name}({type}) -> {result}
func.func @main(%x: tensor<8x{type}>, %o: tensor<8x{result}>) -> tensor<8x{result}> attributes {{xla.entry}} {{
  %t = gpu.thread_id x {{xla.range = [0 : index, 7 : index]}}
  %v = tensor.extract %x[%t] : tensor<8x{type}>
  %r = func.call @{name}(%v) : ({type}) -> {result}
  %s = tensor.insert %r into %o[%t] : tensor<8x{result}>
  func.return %s : tensor<8x{result}>
}}"""
VECTOR = """func.func private @xla.exp.v2f64(vector<2xf64>) -> vector<2xf64>
func.func @main() -> vector<2xf64> {
  %v = arith.constant dense<[0.0, 1.0]> : vector<2xf64>
  %r = func.call @xla.exp.v2f64(%v) : (vector<2xf64>) -> vector<2xf64>
  func.return %r : vector<2xf64>
}"""


@pytest.mark.parametrize("pipeline", ["", "kernel-pipeline"])
@pytest.mark.parametrize(("name", "type_"), [("exp", "f64"), ("log1p", "f64"), ("tanh", "f32"), ("rsqrt", "f32")])
def test_functions_of_the_library(name: str, type_: str, pipeline: str) -> None:
    """A function of the library is the op of its name, in the interpreter and behind all passes."""
    kernel = read_module(CALL.format(name=f"xla.{name}.{type_}", type=type_, result=type_))
    launch, arguments = launch_of_module(kernel), module_arguments(kernel)
    x, out = random_inputs(arguments, 3)
    stage = run_passes(kernel, parse_kernel_pipeline(pipeline), H100)[-1]
    (actual,) = run_module(stage.kernel, launch, arguments, [np.abs(x), out])
    expected = 1 / np.sqrt(np.abs(x)) if name == "rsqrt" else getattr(np, name)(np.abs(x))
    np.testing.assert_allclose(actual.array, expected, rtol=1e-6)


def test_rounding_to_a_shorter_float() -> None:
    """``xla.fptrunc`` rounds to the nearest."""
    kernel = read_module(CALL.format(name="xla.fptrunc.f32.to.f16", type="f32", result="f16"))
    arguments = module_arguments(kernel)
    x, out = random_inputs(arguments, 3)
    (actual,) = run_module(kernel, launch_of_module(kernel), arguments, [x, out])
    np.testing.assert_array_equal(actual.array, x.astype(np.float16))


def test_functions_of_vectors() -> None:
    """Their types are in their names."""
    kernel = read_module(VECTOR)
    (actual,) = run_module(kernel, launch_of_module(kernel, threads=(1, 1, 1)), [], [])
    np.testing.assert_allclose(actual.array, [np.exp([0.0, 1.0])], rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "type_"),
    [("xla.exp.f64", "f32"), ("xla.unheard_of.f32", "f32"), ("exp.f32", "f32"), ("xla.absi.f32", "f32")],
)
def test_other_functions_are_refused(name: str, type_: str) -> None:
    """A function that is not of the library passes through all passes, and a run names the call and its line."""
    kernel = read_module(CALL.format(name=name, type=type_, result=type_), "k.mlir")
    arguments = module_arguments(kernel)
    arrays = random_inputs(arguments, 0)
    stage = run_passes(kernel, parse_kernel_pipeline("kernel-pipeline"), H100)[-1]
    for item in (kernel, stage.kernel):
        with pytest.raises(VerificationError, match=f"only declares the function '{name}'") as caught:
            run_module(item, launch_of_module(kernel), arguments, arrays)
        (problem,) = caught.value.diagnostics
        assert (problem.location, problem.op) == ("k.mlir:5", "func.call")
        assert "xla.exp.f64" in problem.hint
