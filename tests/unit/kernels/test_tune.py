"""Other grids of loop kernels, by a model."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit
from shardy_py.kernels.tune import format_tuned, tuned_launches
from tests.unit.kernels.fusions import SUM, fusion_of

NEGATE = """func.func @main(%x: tensor<4802xf32>) -> tensor<4802xf32> {
  %0 = stablehlo.negate %x : tensor<4802xf32>
  return %0 : tensor<4802xf32>
}"""


def test_grids_of_a_small_loop() -> None:
    """They divide the elements, compute the same, and few blocks for many cores are the reason of most."""
    kernel = emit(fusion_of(NEGATE))
    found = tuned_launches(kernel)
    assert {item.kernel.launch.unroll for item in found} == {1, 2}
    assert found == tuple(sorted(found, key=lambda item: item.cycles))
    assert found[0].kernel.launch.blocks[0] >= found[-1].kernel.launch.blocks[0]
    assert found[0].sectors == 250  # 4 bytes are read and 4 written, in sectors of 32 bytes
    assert "blocks for 132 cores" in found[-1].reason
    x = np.arange(4802, dtype=np.float32)
    np.testing.assert_array_equal(found[-1].kernel.run(x, stage="initial")[0], -x)
    assert "(as XLA)" in format_tuned(kernel, found)


def test_rows_are_not_tuned() -> None:
    """The grid of a reduction follows from its rows."""
    with pytest.raises(UnsupportedError, match="follows from its tiles or rows"):
        tuned_launches(emit(fusion_of(SUM.format(shape="4x256", result="4", dim=1))))
