"""Kernels of the transpose emitter."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.kernels import Kernel, emit
from shardy_py.layout.numpy_arrays import numpy_dtype
from tests.unit.kernels.fusions import LOG_TRANSPOSE_ADD, TRANSPOSE, fusion_of

# Stages after which loops, places and steps are others; the last one at which modules have tensors.
STAGES = ("initial", "lower-loops-to-scf", "flatten-tensors", "optimize-loops")
LAST_WITH_TENSORS = "convert-pure-calls"
SHAPES_AT_ALL_STAGES = ("33x70", "20x6x30", "64x64x2", "31x60")

SIDE_OUTPUT = """
func.func @main(%x: tensor<40x50xDTYPE>) -> (tensor<50x40xDTYPE>, tensor<2000xDTYPE>, tensor<50x40xDTYPE>) {
  %0 = stablehlo.add %x, %x : tensor<40x50xDTYPE>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<40x50xDTYPE>) -> tensor<50x40xDTYPE>
  %2 = stablehlo.negate %1 : tensor<50x40xDTYPE>
  %3 = stablehlo.reshape %0 : (tensor<40x50xDTYPE>) -> tensor<2000xDTYPE>
  %4 = stablehlo.transpose %x, dims = [1, 0] : (tensor<40x50xDTYPE>) -> tensor<50x40xDTYPE>
  return %2, %3, %4 : tensor<50x40xDTYPE>, tensor<2000xDTYPE>, tensor<50x40xDTYPE>
}"""


def transposed(shape: str, result: str, dims: str, dtype: str = "f32") -> Kernel:
    """The kernel of a transpose."""
    return emit(fusion_of(TRANSPOSE.format(shape=shape, result=result, dims=dims, dtype=dtype)))


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    """An array with other numbers in each row and column."""
    return (np.arange(np.prod(shape)) % 127 - 60).reshape(shape).astype(numpy_dtype(dtype))


def results(map_: object) -> str:
    """The results of a map, as text."""
    return str(map_).partition(" -> ")[2].partition(", domain")[0]


def test_the_transpose_of_the_document() -> None:
    """Tiles of 32 by 32 of the two dimensions that swap; the columns of a tile lie in different banks."""
    kernel = transposed("20x160x170", "170x160x20", "2, 1, 0")
    read, written = kernel.maps
    assert kernel.launch.blocks == (960, 1, 1)
    assert results(read) == "(s0 * 4 + th_x / 32, bl_x / 6, (bl_x mod 6) * 32 + th_x mod 32)"
    assert results(written) == "((bl_x mod 6) * 32 + s0 * 4 + th_x / 32, bl_x / 6, th_x mod 32)"
    assert "s0 in [0, 4]" in str(read)
    initial = kernel.stage("initial")
    assert "xla_gpu.allocate_shared : tensor<32x1x33xf32>" in initial
    assert initial.count("xla_gpu.sync_threads") == 1


@pytest.mark.parametrize(
    ("shape", "result", "dims", "dtype"),
    [
        ("33x70", "70x33", "1, 0", "f32"),
        ("3x40x2x17", "2x17x3x40", "2, 3, 0, 1", "f64"),
        ("20x6x30", "30x6x20", "2, 1, 0", "f32"),
        ("64x64x2", "64x64x2", "1, 0, 2", "f32"),
        ("64x3x64x2", "64x3x64x2", "2, 1, 0, 3", "f16"),
        ("66x40", "40x66", "1, 0", "bf16"),
        ("3x20x70", "3x70x20", "0, 2, 1", "f16"),
        ("24x10x20", "20x10x24", "2, 1, 0", "i16"),
        ("20x3x44", "3x44x20", "1, 2, 0", "bf16"),
        pytest.param("48x132", "132x48", "1, 0", "i8", marks=pytest.mark.slow),
        pytest.param("48x132", "132x48", "1, 0", "i1", marks=pytest.mark.slow),
        ("31x60", "60x31", "1, 0", "bf16"),
    ],
)
def test_transposes_at_stages(shape: str, result: str, dims: str, dtype: str) -> None:
    """Whatever moves, and of however many bits, stages move the same elements without a race."""
    kernel = transposed(shape, result, dims, dtype)
    assert kernel.choice.kind.value == "transpose"
    x = numbers(tuple(map(int, shape.split("x"))), dtype)
    expected = x.transpose([int(item) for item in dims.split(",")])
    # A stage runs what those before it made of the kernel: of most shapes the first and the last one say it all.
    for stage in (*(STAGES if shape in SHAPES_AT_ALL_STAGES else STAGES[:1]), LAST_WITH_TENSORS):
        (actual,) = kernel.run(x, stage=stage)
        assert actual.tobytes() == np.ascontiguousarray(expected).tobytes(), stage


@pytest.mark.parametrize("dtype", ["f32", pytest.param("bf16", marks=pytest.mark.slow)])
def test_side_outputs_and_several_transposes(dtype: str) -> None:
    """A root that is no transpose is written where its element is read; two transposes have a tile each."""
    kernel = emit(fusion_of(SIDE_OUTPUT.replace("DTYPE", dtype)))
    assert kernel.stage("initial").count("xla_gpu.allocate_shared") == 2
    assert len(kernel.maps) == kernel.stage("initial").count("xla_gpu.loop")
    x = numbers((40, 50), dtype)
    for stage in ("initial", "lower-loops-to-scf", LAST_WITH_TENSORS):
        first, second, third = kernel.run(x, stage=stage)
        assert (first == -(x + x).T).all()
        assert (second == (x + x).reshape(2000)).all()
        assert (third == x.T).all()


def test_columns_that_wrap_on_the_host() -> None:
    """Places in the tile begin again at the last column; vectors of the host's loops take them as they are."""
    kernel = transposed("64x128", "128x64", "1, 0", "i8")
    x = np.random.default_rng(0).integers(-128, 128, (64, 128)).astype(np.int8)
    (actual,) = kernel.run(x, on="host")
    np.testing.assert_array_equal(actual, x.T)


def test_what_follows_a_transpose_is_its_epilogue() -> None:
    """The operand of a transpose that is also read behind it is computed in both loops."""
    kernel = emit(fusion_of(LOG_TRANSPOSE_ADD.format(n=64)))
    assert "main__epilogue__add" in kernel.stage("initial")
    x = np.linspace(1, 5, 64 * 64, dtype=np.float32).reshape(64, 64)
    (actual,) = kernel.run(x, stage=LAST_WITH_TENSORS)
    np.testing.assert_allclose(actual, np.log(x) + np.log(x).T, rtol=1e-6)


def test_vectors_of_a_transpose_that_keeps_the_fast_dimension() -> None:
    """Elements of the dimension that stays are neighbours of one thread, which takes no rows at once."""
    kernel = transposed("512x512x2", "512x512x2", "1, 0, 2", "f16")
    assert kernel.launch.unroll == 1
    assert results(kernel.maps[0]).endswith("(bl_x mod 16) * 32 + th_x mod 32, s1)")
