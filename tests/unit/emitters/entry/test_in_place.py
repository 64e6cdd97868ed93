"""Kernels of updates in place."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.emitters import emit
from shardy_py.emitters.fusion.aliases import slices_of
from tests.unit.emitters.fusions import fusion_of

UPDATE = """
func.func @main(%x: tensor<20x30xf32>, %u: tensor<5x6xf32>, %i: tensor<TYPE>, %j: tensor<TYPE>) -> tensor<20x30xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %j
      : (tensor<20x30xf32>, tensor<5x6xf32>, tensor<TYPE>, tensor<TYPE>) -> tensor<20x30xf32>
  return %0 : tensor<20x30xf32>
}"""

TWO = """
func.func @main(%x: tensor<9x4xf32>, %y: tensor<9x4xf32>, %u: tensor<2x4xf32>, %i: tensor<i32>)
    -> (tensor<9x4xf32>, tensor<9x4xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %v = stablehlo.negate %u : tensor<2x4xf32>
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %c
      : (tensor<9x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<9x4xf32>
  %1 = stablehlo.dynamic_update_slice SOURCE, %v, %c, %c
      : (tensor<9x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<9x4xf32>
  return %0, %1 : tensor<9x4xf32>, tensor<9x4xf32>
}"""


def updated(x: np.ndarray, u: np.ndarray, i: int, j: int) -> np.ndarray:
    """What an update gives."""
    found = x.copy()
    found[i : i + u.shape[0], j : j + u.shape[1]] = u
    return found


@pytest.mark.parametrize("on", ["interpreter", "host"])
@pytest.mark.parametrize("dtype", ["i32", "ui8"])
def test_an_update_begins_where_it_fits(dtype: str, on: str) -> None:
    """Starts are clamped to the places where the update fits; the parameter that is given stays as it is."""
    kernel = emit(fusion_of(UPDATE.replace("TYPE", dtype)))
    assert (kernel.launch.blocks, kernel.launch.threads) == ((1, 1, 1), (30, 1, 1))
    x, u = np.zeros((20, 30), np.float32), np.arange(1, 31, dtype=np.float32).reshape(5, 6)
    number = np.dtype("int32" if dtype == "i32" else "uint8")
    for i, j in ((3, 4), (200, 29), (0, 0)) if dtype == "ui8" else ((3, 4), (-7, 29), (19, -1)):
        (found,) = kernel.run(x, u, np.array(i, number), np.array(j, number), on=on)  # type: ignore[arg-type]
        expected = updated(x, u, min(max(i, 0), 15), min(max(j, 0), 24))
        np.testing.assert_array_equal(found, expected)
        assert not x.any()


def test_a_bitcast_behind_an_update_moves_nothing() -> None:
    """A root that is a bitcast of an update writes the same memory; starts may be computed."""
    text = UPDATE.replace("TYPE", "i32").replace(
        "  return %0 : tensor<20x30xf32>",
        "  %r = stablehlo.reshape %0 : (tensor<20x30xf32>) -> tensor<600xf32>\n  return %r : tensor<600xf32>",
    )
    text = text.replace("-> tensor<20x30xf32> {", "-> tensor<600xf32> {\n  %k = stablehlo.negate %i : tensor<i32>", 1)
    kernel = emit(fusion_of(text.replace("%u, %i, %j\n", "%u, %k, %j\n")))
    x, u = np.zeros((20, 30), np.float32), np.arange(1, 31, dtype=np.float32).reshape(5, 6)
    (found,) = kernel.run(x, u, np.int32(-3), np.int32(4))
    np.testing.assert_array_equal(found, updated(x, u, 3, 4).reshape(600))


def test_the_result_is_the_memory_of_the_parameter() -> None:
    """The argument of the result has the slice of the parameter, which is not read-only then."""
    text = emit(fusion_of(UPDATE.replace("TYPE", "i32"))).stages["initial"]
    head = text[: text.index("-> tensor<20x30xf32>")]
    assert head.count("xla.slice_index = 0") == 2
    assert head.count("xla.invariant") == 3


def test_every_stage_gives_the_same() -> None:
    """No pass changes what an update in place computes, in which one start is known and one is not."""
    kernel = emit(fusion_of(TWO.replace("SOURCE", "%y")))
    assert slices_of(kernel.fusion, kernel.choice) == (0, 1, 2, 3, 0, 1)
    x, u = np.ones((9, 4), np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)
    for stage in kernel.stages:
        first, second = kernel.run(x, x + 1, u, np.array(6, np.int32), stage=stage)
        np.testing.assert_array_equal(first, updated(x, u, 6, 0), err_msg=stage)
        np.testing.assert_array_equal(second, updated(x + 1, -u, 0, 0), err_msg=stage)


def test_two_updates_of_one_parameter_are_not_in_place() -> None:
    """Two results cannot both be in the memory of one parameter; then the loop emitter writes whole results."""
    kernel = emit(fusion_of(TWO.replace("SOURCE", "%x")))
    assert kernel.choice.kind.value == "loop"
    x, u = np.ones((9, 4), np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)
    first, second = kernel.run(x, x, u, np.array(6, np.int32))
    np.testing.assert_array_equal(first, updated(x, u, 6, 0))
    np.testing.assert_array_equal(second, updated(x, -u, 0, 0))
