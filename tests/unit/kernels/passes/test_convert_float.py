"""Functions of floats of 16 bits."""

from __future__ import annotations

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

import ml_dtypes
import numpy as np

from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.passes.float_conversions import ConvertFloat
from tests.unit.kernels.module_texts import after, run

TEXT = """func.func @main(%x: tensor<32xTYPE>, %o: tensor<32xTYPE>) -> tensor<32xTYPE> attributes {xla.entry} {
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %v = tensor.extract %x[%t] : tensor<32xTYPE>
  %w = math.NAME %v : TYPE
  %r = tensor.insert %w into %o[%t] : tensor<32xTYPE>
  func.return %r : tensor<32xTYPE>
}"""
LAUNCH = Launch((1, 1, 1), (32, 1, 1))


@pytest.mark.parametrize(("dtype", "name"), [(ml_dtypes.bfloat16, "bf16"), (np.float16, "f16")])
@pytest.mark.parametrize("function", ["exp", "log", "sin", "rsqrt"])
def test_functions_are_computed_in_f32(dtype: object, name: str, function: str) -> None:
    """The function is one of f32 between a widening and a rounding, and is off by one unit at most."""
    text = TEXT.replace("TYPE", name).replace("NAME", function)
    found = after(text, ConvertFloat())
    assert f": {name}" not in "".join(line for line in found.splitlines() if "math." in line)
    x = np.linspace(0.1, 4, 32).astype(dtype)
    near, got = run(text, x, launch=LAUNCH), run(found, x, launch=LAUNCH)
    assert np.abs(near.view(np.int16).astype(int) - got.view(np.int16)).max() <= 1


def test_powers_of_two_approximate() -> None:
    """Exponentials and logarithms are those of base two, which devices approximate."""
    assert "math.exp2 %" in after(TEXT.replace("TYPE", "bf16").replace("NAME", "exp"), ConvertFloat())
    assert "fastmath<afn>" in after(TEXT.replace("TYPE", "bf16").replace("NAME", "log"), ConvertFloat())


def test_other_functions_stay() -> None:
    """What touches the sign only, and functions of wider floats, stay."""
    for name, function in (("bf16", "absf"), ("f32", "exp")):
        text = after(TEXT.replace("TYPE", name).replace("NAME", function))
        assert after(text, ConvertFloat()) == text
