"""Kernels that read the bits of words of another width."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import ml_dtypes
import numpy as np

from shardy_py.kernels import emit
from tests.unit.kernels.fusions import fusion_of

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
    given, made = types if splits else types[::-1]
    kernel = emit(fusion_of(BITCAST.format(given=given, made=made)))
    array, want = (words, parts) if splits else (parts, words)
    for stage, on in (("initial", "interpreter"), (None, "interpreter"), (None, "host")):
        (found,) = kernel.run(array, stage=stage, on=on)
        assert found.shape == want.shape
        assert found.tobytes() == want.tobytes()
    assert kernel.ptx.count("ld.global") == 1
