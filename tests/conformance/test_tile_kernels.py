"""Kernels at the level of tiles compute what those at the level of elements do, for the reference's fusions."""

from __future__ import annotations

import json
from math import prod

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit, emit_tiles, read_fusion
from shardy_py.kernels.run.arrays import random_arrays
from tests.conformance.test_kernels import FILE, name_of

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not FILE.exists(), reason="the reference's kernels are not beside the project"),
]

MOST_ELEMENTS = 100_000
TAKEN = ("loop", "transpose", "reduction")
REQUIRED = 0.85


def test_tile_kernels() -> None:
    """Most fusions of loops, transposes and reductions have tiles, and all that have compute the same."""
    wrong, taken, refused = [], 0, {}
    for kernel in json.loads(FILE.read_text())["fusions"]:
        if kernel["fused_stablehlo"] is None or kernel["emitter"] not in TAKEN:
            continue
        fusion, name = read_fusion(kernel["fused_stablehlo"]), name_of(kernel)
        try:
            tiles = emit_tiles(fusion)
        except UnsupportedError as error:
            refused[name] = str(error)
            continue
        taken += 1
        if sum(prod(value.shape) for value in (*fusion.parameters, *fusion.roots)) > MOST_ELEMENTS:
            continue
        arrays = random_arrays(fusion, 0)
        for actual, want in zip(tiles.run(*arrays), emit(fusion).run(*arrays, on="host"), strict=True):
            tolerance = 0 if want.dtype.kind in "iub" else 1e-5 if want.dtype.itemsize >= 4 else 2e-2
            both = actual.astype(np.float64), want.astype(np.float64)
            scale = np.max(np.abs(both[1][np.isfinite(both[1])]), initial=1)
            if not np.allclose(*both, rtol=tolerance, atol=tolerance * scale, equal_nan=True):
                wrong.append(name)
    assert wrong == []
    assert taken >= REQUIRED * (taken + len(refused)), refused
