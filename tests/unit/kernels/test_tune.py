"""Other grids of kernels, by a model."""

from __future__ import annotations

from math import prod

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np
from attrs import evolve

from shardy_py.kernels import emit, get_device
from shardy_py.kernels.fusion.fusion import shape_of
from shardy_py.kernels.launch.candidates import launches_for
from shardy_py.kernels.machine_code import MachineCode
from shardy_py.kernels.tune import format_tuned, tuned_launches
from tests.unit.kernels.fusions import SUM, TRANSPOSE, fusion_of

NEGATE = """func.func @main(%x: tensor<4802xf32>) -> tensor<4802xf32> {
  %0 = stablehlo.negate %x : tensor<4802xf32>
  return %0 : tensor<4802xf32>
}"""


def test_grids_of_a_small_loop() -> None:
    """They divide the elements, compute the same, and few blocks for many cores are the reason of most."""
    kernel = emit(fusion_of(NEGATE))
    actual = tuned_launches(kernel)
    assert {item.kernel.launch.unroll for item in actual} == {1, 2}
    assert actual == tuple(sorted(actual, key=lambda item: item.cycles))
    assert actual[0].kernel.launch.blocks[0] >= actual[-1].kernel.launch.blocks[0]
    assert actual[0].sectors == 250  # 4 bytes are read and 4 written, in sectors of 32 bytes
    assert "blocks for 132 cores" in actual[-1].reason
    x = np.arange(4802, dtype=np.float32)
    np.testing.assert_array_equal(actual[-1].kernel.run(x, stage="initial")[0], -x)
    assert "(as XLA)" in format_tuned(kernel, actual)


TEXTS = {
    "row": SUM.format(shape="2x96", result="2", dim=1),
    "multi-row": SUM.format(shape="64x8", result="64", dim=1),
    "column": SUM.format(shape="33x34", result="34", dim=0),
    "transpose": TRANSPOSE.format(shape="16x16", result="16x16", dims="1, 0", dtype="f32"),
}


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("row", "column")]


@pytest.mark.parametrize("name", ["multi-row", "transpose", *SLOW])
def test_grids_of_other_emitters_compute_the_same(name: str) -> None:
    """Rows have more or fewer threads, vectors and tiles other widths; each element is computed once all the same."""
    kernel = emit(fusion_of(TEXTS[name]))
    launches = set(launches_for(kernel.choice, kernel.launch, kernel.device)) - {kernel.launch}
    assert launches
    shape = shape_of(kernel.fusion.parameters[0])
    x = np.arange(prod(shape), dtype=np.float32).reshape(shape) % 7
    expected = x.T if name == "transpose" else x.sum(0 if name == "column" else 1)
    for launch in {min(launches, key=str), max(launches, key=str)}:
        np.testing.assert_array_equal(evolve(kernel, launch=launch).run(x, stage="initial")[0], expected)


@pytest.mark.slow
def test_tiles_are_ranked() -> None:
    """A transpose passes shared memory, which counts; each grid says what decides, and its occupancy."""
    kernel = emit(fusion_of(TEXTS["transpose"]))
    tuned = tuned_launches(kernel)
    assert {item.kernel.launch.unroll for item in tuned} == {1, 2}
    assert all(item.passes > 0 and 0 < item.occupancy <= 1 and item.reason for item in tuned)
    assert "occupancy" in format_tuned(kernel, tuned)


def test_registers_limit_warps() -> None:
    """A core has 65536 registers, which a warp takes in steps of 256."""
    device = get_device("h100")
    assert [MachineCode(number, 0).warps(device) for number in (16, 32, 33, 255)] == [128, 64, 51, 8]
