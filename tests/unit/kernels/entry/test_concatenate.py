"""Kernels of the concatenate emitter."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.kernels import emit
from tests.unit.kernels.fusions import fusion_of

JOIN = """
func.func @main(%x: tensor<200xf32>, %y: tensor<400xf32>, %z: tensor<300xf32>) -> tensor<900xf32> {
  %0 = stablehlo.negate %y : tensor<400xf32>
  %1 = stablehlo.concatenate %x, %0, %z, dim = 0
      : (tensor<200xf32>, tensor<400xf32>, tensor<300xf32>) -> tensor<900xf32>
  %2 = stablehlo.abs %1 : tensor<900xf32>
  return %2 : tensor<900xf32>
}"""


def test_a_loop_per_operand() -> None:
    """The threads of the longest operand take one operand after the other, each as far as it goes."""
    kernel = emit(fusion_of(JOIN))
    assert kernel.launch.blocks == (4, 1, 1)
    texts = [str(map_) for map_ in kernel.maps]
    assert [text.partition(" -> ")[2].partition(",")[0] for text in texts] == [
        *("(bl_x * 128 + th_x)", "(bl_x * 128 + th_x + 200)", "(bl_x * 128 + th_x + 600)")
    ]
    assert [text.rpartition(" in ")[2] for text in texts] == ["[0, 199]", "[0, 399]", "[0, 299]"]
    assert kernel.stages["initial"].count("xla_gpu.loop") == 3


@pytest.mark.parametrize("on", ["interpreter", "host"])
def test_what_is_joined(on: str) -> None:
    """Each element goes through what is computed before the join and after it."""
    x, y, z = (np.arange(size, dtype=np.float32) - 100 for size in (200, 400, 300))
    (found,) = emit(fusion_of(JOIN)).run(x, y, z, on=on)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found, np.abs(np.concatenate([x, -y, z])))


def test_every_stage_gives_the_same() -> None:
    """No pass changes what a concatenate computes."""
    kernel = emit(fusion_of(JOIN))
    x, y, z = (np.arange(size, dtype=np.float32) - 100 for size in (200, 400, 300))
    for stage in kernel.stages:
        (found,) = kernel.run(x, y, z, stage=stage)
        np.testing.assert_array_equal(found, np.abs(np.concatenate([x, -y, z])), err_msg=stage)
