"""Arrays that kernels are run on: their shapes, dtypes and orders of bytes, and their memory."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import ml_dtypes
import numpy as np

from shardy_py.errors import VerificationError
from shardy_py.kernels import emit
from shardy_py.kernels.run.arrays import memory_guard, random_arrays
from tests.unit.kernels.fusions import NEGATE, fusion_of

ADD = """
func.func @main(%x: tensor<4x{type}>) -> tensor<4x{type}> {{
  %0 = stablehlo.add %x, %x : tensor<4x{type}>
  return %0 : tensor<4x{type}>
}}"""


@pytest.mark.parametrize("on", ["interpreter", "host"])
@pytest.mark.parametrize(
    ("type_", "dtype"),
    [
        ("i32", np.float32),
        ("f32", np.int32),
        ("ui32", np.int32),
        ("bf16", np.uint16),
        ("i1", np.int8),
        ("f64", np.float32),
        ("complex<f32>", np.float64),
        ("i4", np.int8),
        ("f8E4M3FN", ml_dtypes.float8_e5m2),
    ],
)
def test_dtypes_are_those_of_parameters(type_: str, dtype: type, on: str) -> None:
    """An array of another dtype is refused, also one whose elements have as many bits."""
    kernel = emit(fusion_of(ADD.format(type=type_)))
    with pytest.raises(VerificationError, match=f"expected an array of .*, got {np.dtype(dtype)}"):
        kernel.run(np.ones(4).astype(dtype), on=on)


def test_records_are_refused() -> None:
    """An array of records, which numpy does not turn into numbers, is refused like any other dtype."""
    with pytest.raises(VerificationError, match="expected an array of float32, got"):
        emit(fusion_of(ADD.format(type="f32"))).run(np.zeros(4, [("x", "f4"), ("y", "f4")]))


@pytest.mark.parametrize("stage", [None, "initial"])
def test_wide_complex_numbers_run(stage: str | None) -> None:
    """Complex numbers of doubles run in the interpreter at every stage, and on the host."""
    kernel = emit(fusion_of(ADD.format(type="complex<f64>")))
    x = np.arange(4) * (1 + 1j)
    np.testing.assert_array_equal(kernel.run(x, stage=stage)[0], 2 * x)
    np.testing.assert_array_equal(kernel.run(x, on="host")[0], 2 * x)


def test_masked_elements_are_refused() -> None:
    """Elements that a mask hides are not computed with; an array whose mask hides nothing is one like others."""
    kernel = emit(fusion_of(ADD.format(type="f32")))
    x = np.arange(4, dtype=np.float32)
    with pytest.raises(VerificationError, match="argument 0 has masked elements"):
        kernel.run(np.ma.masked_array(x, mask=[True, False, False, False]))
    np.testing.assert_array_equal(kernel.run(np.ma.masked_array(x))[0], 2 * x)


@pytest.mark.parametrize("on", ["interpreter", "host"])
def test_order_of_bytes_is_changed(on: str) -> None:
    """An array of the other order of bytes gives the same numbers."""
    kernel = emit(fusion_of(ADD.format(type="f32")))
    (actual,) = kernel.run(np.array([1, 2, 3, 4], ">f4"), on=on)
    np.testing.assert_array_equal(actual, [2, 4, 6, 8])


@pytest.mark.parametrize("array", [np.ones((2, 2), np.float32), np.ones(5, np.float32), [1.0, 2.0, 3.0, 4.0]])
def test_shapes_are_those_of_parameters(array: object) -> None:
    """An array of another shape, or what is not an array, is refused."""
    with pytest.raises(VerificationError, match="the kernel takes tensor<4xf32>"):
        emit(fusion_of(ADD.format(type="f32"))).run(array)


def test_arrays_fit_memory() -> None:
    """Arrays that no machine has memory for are refused before they are made."""
    with pytest.raises(VerificationError, match="bytes, more than this machine has") as error:
        random_arrays(fusion_of(NEGATE.format(shape=f"{2**58}")), seed=0)
    assert error.value.diagnostics[0].code == "run-memory"


def test_lack_of_memory_is_an_error_of_the_package() -> None:
    """What ends for lack of memory ends in an error that says how much the arrays need."""
    fusion = fusion_of(NEGATE.format(shape="300"))
    with pytest.raises(VerificationError, match="need 2400 bytes"), memory_guard(fusion):
        raise MemoryError
