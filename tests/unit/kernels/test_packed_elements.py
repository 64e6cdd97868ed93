"""Elements of 4 and 2 bits, which share bytes in buffers, on every way of running."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import re
from typing import Any

import ml_dtypes
import numpy as np

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import Kernel, emit
from shardy_py.kernels.run.values import packed_array, unpacked_array
from tests.unit.kernels.fusions import TRANSPOSE, fusion_of

INTEGERS: dict[str, Any] = {
    "i4": ml_dtypes.int4,
    "ui4": ml_dtypes.uint4,
    "i2": ml_dtypes.int2,
    "ui2": ml_dtypes.uint2,
}
DTYPES = {**INTEGERS, "f4E2M1FN": ml_dtypes.float4_e2m1fn}


def numbers(shape: tuple[int, ...], type_: str, seed: int = 0) -> Any:
    """Elements of a type with all their bits."""
    return np.random.default_rng(seed).integers(0, 16, shape).astype(np.int8).astype(DTYPES[type_])


def check(text: str, arrays: list[Any], expected: Any) -> Kernel:
    """Check what a kernel computes before it is lowered, at its last stage, and on the host; return it."""
    kernel = emit(fusion_of(text))
    for on, stage in (("interpreter", "initial"), ("interpreter", None), ("host", None)):
        (actual,) = kernel.run(*arrays, on=on, stage=stage)
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual.astype(np.int32), expected.astype(np.int32), f"{on} {stage}")
    return kernel


@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("count", [1, 7, 64])
def test_arrays_are_packed(type_: str, count: int) -> None:
    """An array has as many bytes as its elements fill, and comes back out of them."""
    array, bits = numbers((count,), type_), int(type_[-1])
    actual = packed_array(array)
    assert actual.dtype == np.uint8
    assert len(actual) == -(-count * bits // 8)
    np.testing.assert_array_equal(unpacked_array(actual, (count,), array.dtype), array)
    assert actual[0] & (1 << bits) - 1 == int(array[0]) & (1 << bits) - 1


@pytest.mark.parametrize(("type_", "count", "size"), [("i4", 63, 32), ("ui2", 3, 1)])
def test_buffers_have_the_bytes_that_elements_fill(type_: str, count: int, size: int) -> None:
    """Declared sizes are rounded up, and addresses are those of bytes."""
    array = numbers((count,), type_)
    read = f"tensor<{count}x{type_}>"
    text = f"""func.func @main(%x: {read}) -> {read} {{
      %0 = stablehlo.add %x, %x : {read}
      return %0 : {read}
    }}"""
    kernel = check(text, [array], (array.astype(np.int8) * 2).astype(array.dtype))
    sizes = re.findall(r"llvm.dereferenceable = (\d+)", kernel.stage("initial"))
    assert sizes == [str(size)] * 2
    assert not re.search(r"getelementptr (?:inbounds )?i[24],", kernel.llvm)


def test_threads_that_write_one_byte() -> None:
    """Each of several threads changes its own element of a byte: by trial, where it does not write the byte whole."""
    array = numbers((33, 65), "i2")
    text = TRANSPOSE.format(shape="33x65", result="65x33", dims="1, 0", dtype="i2")
    assert ".cas.b32" in check(text, [array], array.T).ptx


def test_whole_bytes_are_written_at_once() -> None:
    """A thread that has all elements of a byte, as those of large loops do, writes it without a trial."""
    count = 270336 * 2
    text = f"""func.func @main(%x: tensor<{count}xi4>) -> tensor<{count}xi4> {{
      %0 = stablehlo.not %x : tensor<{count}xi4>
      return %0 : tensor<{count}xi4>
    }}"""
    kernel = emit(fusion_of(text))
    assert re.findall(r"(?:ld|st|atom)\.(?:relaxed\.)?g\w+\S*", kernel.ptx) == ["ld.global.nc.b16", "st.global.v2.b8"]
    array = numbers((count,), "i4")
    (actual,) = kernel.run(array, on="host")
    np.testing.assert_array_equal(actual.astype(np.int8), ~array.astype(np.int8))


SLICE = """
func.func @main(%x: tensor<9x33x{type}>) -> tensor<4x11x{type}> {{
  %0 = stablehlo.slice %x [1:8:2, 3:14] : (tensor<9x33x{type}>) -> tensor<4x11x{type}>
  return %0 : tensor<4x11x{type}>
}}"""


@pytest.mark.parametrize("type_", ["i4", "ui2", "f4E2M1FN"])
def test_slices_begin_inside_bytes(type_: str) -> None:
    """Rows of an odd length, from an odd offset on."""
    array = numbers((9, 33), type_)
    check(SLICE.format(type=type_), [array], array[1:8:2, 3:14])


@pytest.mark.parametrize("type_", ["i2"])
def test_concatenates_and_constants(type_: str) -> None:
    """Operands of odd lengths follow each other inside bytes; constants are tables of whole bytes."""
    first, second = numbers((5, 3), type_), numbers((5, 4), type_, 1)
    table = numbers((5, 7), type_, 2)
    text = f"""func.func @main(%x: tensor<5x3x{type_}>, %y: tensor<5x4x{type_}>) -> tensor<5x7x{type_}> {{
      %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<5x3x{type_}>, tensor<5x4x{type_}>) -> tensor<5x7x{type_}>
      %c = stablehlo.constant dense<{table.astype(int).tolist()}> : tensor<5x7x{type_}>
      %1 = stablehlo.xor %0, %c : tensor<5x7x{type_}>
      return %1 : tensor<5x7x{type_}>
    }}"""
    joined = np.concatenate([first, second], 1).astype(np.int8)
    check(text, [first, second], (joined ^ table.astype(np.int8)).astype(DTYPES[type_]))


@pytest.mark.parametrize(("type_", "shape", "dimension"), [("i4", (4, 256), 1), ("ui2", (256, 33), 0)])
def test_reductions(type_: str, shape: tuple[int, int], dimension: int) -> None:
    """Sums of rows and columns wrap, and go through shared memory where each has a byte."""
    array = numbers(shape, type_)
    read, written = f"tensor<{shape[0]}x{shape[1]}x{type_}>", f"tensor<{shape[1 - dimension]}x{type_}>"
    text = f"""func.func @main(%x: {read}) -> {written} {{
      %c = stablehlo.constant dense<0> : tensor<{type_}>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [{dimension}]
          : ({read}, tensor<{type_}>) -> {written}
      return %0 : {written}
    }}"""
    check(text, [array], array.astype(np.int32).sum(dimension).astype(np.int8).astype(DTYPES[type_]))


@pytest.mark.parametrize(
    "combine", ["%r = stablehlo.add %a, %b : tensor<i4>", "%r = stablehlo.maximum %a, %b : tensor<i4>"]
)
def test_scatters(combine: str) -> None:
    """Updates of rows of odd lengths change no neighbour in their bytes."""
    array, updates = numbers((10, 4), "i4"), numbers((16, 1, 4), "i4", 1)
    indices = (np.arange(16, dtype=np.int32) * 3 % 10).reshape(16, 1)
    text = f"""func.func @main(%x: tensor<10x4xi4>, %i: tensor<16x1xi32>, %u: tensor<16x1x4xi4>) -> tensor<10x4xi4> {{
      %0 = "stablehlo.scatter"(%x, %i, %u) ({{
      ^bb0(%a: tensor<i4>, %b: tensor<i4>):
        {combine}
        stablehlo.return %r : tensor<i4>
      }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2],
           scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}
          : (tensor<10x4xi4>, tensor<16x1xi32>, tensor<16x1x4xi4>) -> tensor<10x4xi4>
      return %0 : tensor<10x4xi4>
    }}"""
    expected = array.astype(np.int32)
    for index, update in zip(indices[:, 0], updates.astype(np.int32)[:, 0], strict=True):
        expected[index] = expected[index] + update if "add" in combine else np.maximum(expected[index], update)
    check(text, [array, indices, updates], expected.astype(np.int8).astype(ml_dtypes.int4))


@pytest.mark.parametrize(
    ("op", "compute", "type_"),
    [
        ("shift_left", np.left_shift, "ui4"),
        ("shift_right_arithmetic", np.right_shift, "i2"),
        ("maximum", np.maximum, "i4"),
        ("maximum", np.maximum, "ui2"),
    ],
)
def test_arithmetic_wraps(op: str, compute: Any, type_: str) -> None:
    """Operations have the bits of their type, with a sign or without."""
    array = numbers((37,), type_)
    other = np.ones(37, np.int8).astype(DTYPES[type_])
    text = f"""func.func @main(%x: tensor<37x{type_}>, %y: tensor<37x{type_}>) -> tensor<37x{type_}> {{
      %0 = stablehlo.{op} %x, %y : tensor<37x{type_}>
      return %0 : tensor<37x{type_}>
    }}"""
    expected = compute(array.astype(np.int32), other.astype(np.int32)).astype(np.int8)
    check(text, [array, other], expected.astype(DTYPES[type_]))


@pytest.mark.parametrize("type_", ["i2", "ui2", "i4", "ui4"])
def test_powers_count_all_bits_of_exponents(type_: str) -> None:
    """Powers of all pairs are exact; of one with a negative exponent what is left of the fraction."""
    bits = int(type_.strip("ui"))
    least = 0 if type_.startswith("u") else -(1 << (bits - 1))
    every = range(least, least + (1 << bits))
    pairs = [(base, exponent) for base in every for exponent in every]
    left, right = (np.array(side, np.int8).astype(DTYPES[type_]) for side in zip(*pairs, strict=True))
    shape = f"tensor<{len(pairs)}x{type_}>"
    text = f"""func.func @main(%x: {shape}, %y: {shape}) -> {shape} {{
      %0 = stablehlo.power %x, %y : {shape}
      return %0 : {shape}
    }}"""
    ones = {1: 1, -1: -1}
    expected = [
        (base**exponent if exponent >= 0 else ones.get(base, 0) ** -exponent) - least & (1 << bits) - 1
        for base, exponent in pairs
    ]
    check(text, [left, right], (np.array(expected) + least).astype(np.int8).astype(DTYPES[type_]))


@pytest.mark.parametrize("type_", ["f6E2M3FN"])
def test_other_narrow_types_are_refused(type_: str) -> None:
    """Floats of 6 bits are refused before anything is emitted."""
    with pytest.raises(UnsupportedError, match=f"a kernel has no elements such as those of tensor<3x4x{type_}>"):
        fusion_of(TRANSPOSE.format(shape="3x4", result="4x3", dims="1, 0", dtype=type_))
