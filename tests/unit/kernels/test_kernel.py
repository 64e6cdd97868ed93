"""Kernels as values: their stages, reasons and runs, and those of bitcasts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from shardy_py.errors import OptionError
from shardy_py.kernels import emit
from shardy_py.kernels.reasons import explain
from tests.unit.kernels.fusions import LOG_TRANSPOSE_ADD, NEGATE, SUM, TRANSPOSE, UPDATE, fusion_of

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")


def test_stages_have_names_and_numbers() -> None:
    """A stage is found by its number, its name, or both; the last of several with one name counts."""
    kernel, printed = (emit(fusion_of(NEGATE.format(shape="300"))) for _ in range(2))
    stages = printed.stages
    last = [name for name in stages if name.endswith(".cse")][-1]
    for item in (kernel, printed):
        assert item.stage("initial") == stages["initial"]
        assert item.stage("01") == item.stage("01.canonicalize") == stages["01.canonicalize"]
        assert item.stage("cse") == stages[last]
        with pytest.raises(OptionError, match="no stage 'canonicalise'"):
            item.stage("canonicalise")


def test_kernels_run_at_every_stage() -> None:
    """A kernel gives the same numbers by default and at any stage."""
    kernel = emit(fusion_of(LOG_TRANSPOSE_ADD.format(n=9)))
    x = np.linspace(1, 5, 81, dtype=np.float32).reshape(9, 9)
    expected = np.log(x) + np.log(x).T
    for stage in (None, "initial", "flatten-tensors", "cse"):
        (actual,) = kernel.run(x, stage=stage)
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_text_for_llvm_is_no_module() -> None:
    """The interpreter refuses the text for LLVM, and says what runs it; the host takes no other stage."""
    kernel = emit(fusion_of(NEGATE.format(shape="300")))
    x = np.ones(300, np.float32)
    with pytest.raises(OptionError, match='on="host"'):
        kernel.run(x, stage="to-llvm")
    with pytest.raises(OptionError, match="last stage"):
        kernel.run(x, stage="initial", on="host")


def test_the_device_decides_the_launch() -> None:
    """Elements are united per thread only where there are more of them than the device keeps threads."""
    fusion = fusion_of(NEGATE.format(shape="262144"))
    assert emit(fusion, device="h100").launch.unroll == 1
    assert emit(fusion, device="a100").launch.unroll == 4


def test_maps_of_loops() -> None:
    """The map of a loop kernel is there without any module."""
    (map_,) = emit(fusion_of(NEGATE.format(shape="300"))).maps
    assert "bl_x * 128 + th_x in [0, 299]" in str(map_)


pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NEGATE.format(shape="300"), ("emitter loop", "unroll 1: 300 elements are fewer than the 270336 threads")),
        (NEGATE.format(shape="270336"), ("emitter loop", "unroll 4: the greatest divisor")),
        (
            TRANSPOSE.format(shape="20x160x170", result="170x160x20", dims="2, 1, 0", dtype="f32"),
            ("emitter transpose", "170 and 20 swap", "32 x 1 x 33 in shared", "an element fills a word"),
        ),
        (
            TRANSPOSE.format(shape="64x64", result="64x64", dims="1, 0", dtype="bf16"),
            ("packed: 2 elements of 16 bits", "64 x 64 has 64 rows of 64 in use"),
        ),
        (SUM.format(shape="1024x4096", dim=1, result="1024"), ("emitter reduction", "256 threads share a row")),
        (
            UPDATE.format(read="", update="%u"),
            ("emitter in_place_dynamic_update_slice", "those of the update, tensor<5x6xf32>"),
        ),
    ],
)
def test_reasons(text: str, expected: tuple[str, ...]) -> None:
    """The reasons name the rule that applied, with the numbers of this kernel and its device."""
    kernel = emit(fusion_of(text))
    actual = "\n".join(explain(kernel))
    for part in expected:
        assert part in actual
    blocks, threads = kernel.launch.blocks[0], kernel.launch.threads[0]
    assert actual.endswith(f"grid: {blocks} block{'s' * (blocks != 1)} of {threads} threads")


pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

DTYPES = {"i8": np.int8, "i16": "i2", "i32": "i4", "bf16": ml_dtypes.bfloat16, "f32": "f4", "f64": "f8"}
BITCAST = """
func.func @main(%x: {given}) -> {made} {{
  %0 = stablehlo.bitcast_convert %x : ({given}) -> {made}
  return %0 : {made}
}}"""


@pytest.mark.parametrize(("word", "part"), [("f32", "i8"), ("i32", "bf16"), ("f64", "i16")])
@pytest.mark.parametrize("splits", [True, False])
def test_words_and_their_parts(word: str, part: str, splits: bool) -> None:
    """A word is its parts, the lowest first, in both directions, at all stages, and in one access where it is made."""
    count = np.dtype(DTYPES[word]).itemsize // np.dtype(DTYPES[part]).itemsize
    bits = np.random.default_rng(3).integers(0, 256, (6, 5, np.dtype(DTYPES[word]).itemsize), dtype=np.uint8)
    words, parts = bits.view(DTYPES[word]).reshape(6, 5), bits.view(DTYPES[part])
    types = [f"tensor<6x5x{word}>", f"tensor<6x5x{count}x{part}>"]
    operand_types, result_types = types if splits else types[::-1]
    kernel = emit(fusion_of(BITCAST.format(given=operand_types, made=result_types)))
    array, want = (words, parts) if splits else (parts, words)
    for stage, on in (("initial", "interpreter"), (None, "interpreter"), (None, "host")):
        (actual,) = kernel.run(array, stage=stage, on=on)
        assert actual.shape == want.shape
        assert actual.tobytes() == want.tobytes()
    assert kernel.ptx.count("ld.global") == 1
