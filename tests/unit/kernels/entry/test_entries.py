"""Kernels of concatenates and of updates in place."""

from __future__ import annotations

import numpy as np
import pytest

from shardy_py.kernels import emit, read_fusion
from shardy_py.kernels.fusion.choose import slices_of
from tests.unit.kernels.fusions import changing_stages, fusion_of

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

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
    assert kernel.stage("initial").count("xla_gpu.loop") == 3


@pytest.mark.parametrize("on", ["interpreter", "host"])
def test_what_is_joined(on: str) -> None:
    """Each element goes through what is computed before the join and after it."""
    x, y, z = (np.arange(size, dtype=np.float32) - 100 for size in (200, 400, 300))
    (actual,) = emit(fusion_of(JOIN)).run(x, y, z, on=on)  # type: ignore[arg-type]
    np.testing.assert_array_equal(actual, np.abs(np.concatenate([x, -y, z])))


def test_every_stage_of_a_concatenate_gives_the_same() -> None:
    """No pass changes what a concatenate computes."""
    kernel = emit(fusion_of(JOIN))
    x, y, z = (np.arange(size, dtype=np.float32) - 100 for size in (200, 400, 300))
    for stage in changing_stages(kernel):
        (actual,) = kernel.run(x, y, z, stage=stage)
        np.testing.assert_array_equal(actual, np.abs(np.concatenate([x, -y, z])), err_msg=stage)


pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

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
    actual = x.copy()
    actual[i : i + u.shape[0], j : j + u.shape[1]] = u
    return actual


@pytest.mark.parametrize("on", ["interpreter", "host"])
@pytest.mark.parametrize("dtype", ["i32", "ui8"])
def test_an_update_begins_where_it_fits(dtype: str, on: str) -> None:
    """Starts are clamped to the places where the update fits; the parameter that is given stays as it is."""
    kernel = emit(fusion_of(UPDATE.replace("TYPE", dtype)))
    assert (kernel.launch.blocks, kernel.launch.threads) == ((1, 1, 1), (30, 1, 1))
    x, u = np.zeros((20, 30), np.float32), np.arange(1, 31, dtype=np.float32).reshape(5, 6)
    number = np.dtype("int32" if dtype == "i32" else "uint8")
    for i, j in ((3, 4), (200, 29), (0, 0)) if dtype == "ui8" else ((3, 4), (-7, 29), (19, -1)):
        (actual,) = kernel.run(x, u, np.array(i, number), np.array(j, number), on=on)  # type: ignore[arg-type]
        expected = updated(x, u, min(max(i, 0), 15), min(max(j, 0), 24))
        np.testing.assert_array_equal(actual, expected)
        assert not x.any()


@pytest.mark.parametrize(
    ("dtype", "place", "start"), [("i64", 2**32 + 1, 15), ("i64", 1 - 2**32, 0), ("ui64", 2**32, 15)]
)
def test_a_start_that_no_index_holds(dtype: str, place: int, start: int) -> None:
    """Starts of 64 bits are clamped before they become indices of 32."""
    kernel = emit(fusion_of(UPDATE.replace("TYPE", dtype)))
    x, u = np.zeros((20, 30), np.float32), np.arange(1, 31, dtype=np.float32).reshape(5, 6)
    starts = [np.array(item, np.int64 if dtype == "i64" else np.uint64) for item in (place, 4)]
    for actual in (kernel.run(x, u, *starts), kernel.run(x, u, *starts, on="host")):
        np.testing.assert_array_equal(actual[0], updated(x, u, start, 4))


def test_a_bitcast_behind_an_update_moves_nothing() -> None:
    """A root that is a bitcast of an update writes the same memory; starts may be computed."""
    text = UPDATE.replace("TYPE", "i32").replace(
        "  return %0 : tensor<20x30xf32>",
        "  %r = stablehlo.reshape %0 : (tensor<20x30xf32>) -> tensor<600xf32>\n  return %r : tensor<600xf32>",
    )
    text = text.replace("-> tensor<20x30xf32> {", "-> tensor<600xf32> {\n  %k = stablehlo.negate %i : tensor<i32>", 1)
    kernel = emit(fusion_of(text.replace("%u, %i, %j\n", "%u, %k, %j\n")))
    x, u = np.zeros((20, 30), np.float32), np.arange(1, 31, dtype=np.float32).reshape(5, 6)
    (actual,) = kernel.run(x, u, np.int32(-3), np.int32(4))
    np.testing.assert_array_equal(actual, updated(x, u, 3, 4).reshape(600))


def test_the_result_is_the_memory_of_the_parameter() -> None:
    """The argument of the result has the slice of the parameter, which is not read-only then."""
    text = emit(fusion_of(UPDATE.replace("TYPE", "i32"))).stage("initial")
    head = text[: text.index("-> tensor<20x30xf32>")]
    assert head.count("xla.slice_index = 0") == 2
    assert head.count("xla.invariant") == 3


def test_every_stage_gives_the_same() -> None:
    """No pass changes what an update in place computes, in which one start is known and one is not."""
    kernel = emit(fusion_of(TWO.replace("SOURCE", "%y")))
    assert slices_of(kernel.fusion, kernel.choice) == (0, 1, 2, 3, 0, 1)
    x, u = np.ones((9, 4), np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)
    for stage in changing_stages(kernel):
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


READING = """
func.func @main(%x: tensor<300xi32>, %i: tensor<i32>, %j: tensor<i32>, %at: tensor<1x1xi32>) -> tensor<RESULT> {
  %s = stablehlo.add %i, %j : tensor<i32>
  %t = stablehlo.add %i, %j : tensor<i32>
  %m = stablehlo.dynamic_slice %x, %i, sizes = [250] : (tensor<300xi32>, tensor<i32>) -> tensor<250xi32>
  READ
  %d = stablehlo.add %r, %r : tensor<200xi32>
  %0 = stablehlo.dynamic_update_slice %x, %d, START : (tensor<300xi32>, tensor<200xi32>, tensor<i32>) -> tensor<300xi32>
  %1 = stablehlo.reshape %0 : (tensor<300xi32>) -> tensor<RESULT>
  return %1 : tensor<RESULT>
}"""

SLICE = "%r = stablehlo.dynamic_slice %x, {}, sizes = [200] : (tensor<300xi32>, tensor<i32>) -> tensor<200xi32>"
SAME, OTHER = SLICE.format("%i"), SLICE.format("%j")
EQUAL = SLICE.format("%s")
NESTED = """%r = stablehlo.dynamic_slice %m, %j, sizes = [200] : (tensor<250xi32>, tensor<i32>) -> tensor<200xi32>"""
CUT = "%r = stablehlo.slice %m [0:200] : (tensor<250xi32>) -> tensor<200xi32>"
GATHERED = """%g = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 200>}>
      : (tensor<300xi32>, tensor<1x1xi32>) -> tensor<1x200xi32>
  %r = stablehlo.reshape %g : (tensor<1x200xi32>) -> tensor<200xi32>"""
REGROUPED = (
    SAME.replace("%r", "%g")
    + """
  %h = stablehlo.reshape %g : (tensor<200xi32>) -> tensor<10x20xi32>
  %r = stablehlo.reshape %h : (tensor<10x20xi32>) -> tensor<200xi32>"""
)
TURNED = (
    SAME.replace("%r", "%g")
    + """
  %r = stablehlo.reverse %g, dims = [0] : tensor<200xi32>"""
)


def read_first(x: np.ndarray, read: str, i: int, j: int) -> np.ndarray:
    """What a read gives, of the elements before the update."""

    def part(source: np.ndarray, start: int, size: int) -> np.ndarray:
        start = min(max(start, 0), len(source) - size)
        return source[start : start + size]

    if read is TURNED:
        return part(x, i, 200)[::-1]
    if read in (NESTED, CUT):
        return part(part(x, i, 250), j if read is NESTED else 0, 200)
    return part(x, {OTHER: j, EQUAL: i + j, GATHERED: 7}.get(read, i), 200)


@pytest.mark.parametrize(
    ("read", "start", "is_in_place"),
    [
        pytest.param(SAME, "%i", True, id="same value"),
        pytest.param(EQUAL, "%t", True, id="same computation"),
        pytest.param(REGROUPED, "%i", True, id="reshapes that undo each other"),
        pytest.param(OTHER, "%i", False, id="other value"),
        pytest.param(SAME, "%s", False, id="other computation"),
        pytest.param(NESTED, "%i", False, id="slice of a slice"),
        pytest.param(CUT, "%i", False, id="start that is clamped otherwise"),
        pytest.param(GATHERED, "%i", False, id="start from indices"),
        pytest.param(TURNED, "%i", False, id="other elements of the same slice"),
    ],
)
def test_an_update_may_read_what_it_writes(read: str, start: str, is_in_place: bool) -> None:
    """An update is in place only if each thread reads the element that it writes, by values that are the same."""
    kernel = emit(fusion_of(READING.replace("READ", read).replace("START", start).replace("RESULT", "300xi32")))
    assert kernel.choice.kind.value == ("in_place_dynamic_update_slice" if is_in_place else "loop")
    x = np.arange(300, dtype=np.int32)
    for i, j in ((3, 60), (-9, 80)):
        (actual,) = kernel.run(x, np.int32(i), np.int32(j), np.array([[7]], np.int32))
        at = min(max({"%i": i}.get(start, i + j), 0), 100)
        expected = x.copy()
        expected[at : at + 200] = 2 * read_first(x, read, i, j)
        np.testing.assert_array_equal(actual, expected)


def test_the_result_may_have_another_shape_than_the_parameter() -> None:
    """What is read of the parameter and written to the result is one memory under two shapes, at every stage."""
    text = READING.replace("READ", SAME).replace("START", "%i").replace("RESULT", "3x100xi32")
    kernel = emit(fusion_of(text))
    assert kernel.choice.kind.value == "in_place_dynamic_update_slice"
    x = np.arange(300, dtype=np.int32)
    expected = x.copy()
    expected[3:203] *= 2
    for stage in changing_stages(kernel):
        (actual,) = kernel.run(x, np.int32(3), np.int32(0), np.array([[7]], np.int32), stage=stage)
        np.testing.assert_array_equal(actual, expected.reshape(3, 100), err_msg=stage)


READS_THE_OTHER = """
func.func @main(%x: tensor<9x4xf32>, %y: tensor<9x4xf32>, %i: tensor<i32>) -> (tensor<9x4xf32>, tensor<9x4xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %u = stablehlo.dynamic_slice SOURCE, %i, %c, sizes = [2, 4]
      : (tensor<9x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
  %v = stablehlo.dynamic_slice %x, %i, %c, sizes = [2, 4]
      : (tensor<9x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
  %0 = stablehlo.dynamic_update_slice %x, %v, %i, %c
      : (tensor<9x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<9x4xf32>
  %1 = stablehlo.dynamic_update_slice %y, %u, %c, %c
      : (tensor<9x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<9x4xf32>
  return %0, %1 : tensor<9x4xf32>, tensor<9x4xf32>
}"""


@pytest.mark.parametrize("source", ["%x", "%0", "%y"])
def test_an_update_does_not_read_what_another_one_writes(source: str) -> None:
    """An update of ``y`` from elements of ``x``, or of its update, is not in place beside an update of ``x``."""
    if source == "%0":
        lines = READS_THE_OTHER.splitlines()
        text = "\n".join((*lines[:3], *lines[5:9], *lines[3:5], *lines[9:])).replace("SOURCE", "%0")
    else:
        text = READS_THE_OTHER.replace("SOURCE", source)
    kernel = emit(fusion_of(text))
    assert kernel.choice.kind.value == "loop"
    x, y = np.arange(36, dtype=np.float32).reshape(9, 4), np.zeros((9, 4), np.float32)
    first, second = kernel.run(x, y, np.int32(5))
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, updated(y, y[5:7] if source == "%y" else x[5:7], 0, 0))


def test_an_update_of_an_update_is_not_in_place() -> None:
    """A second update writes into what the first one gives, which is not in the memory of a parameter."""
    text = UPDATE.replace("TYPE", "i32").replace(
        "  return %0",
        """  %1 = stablehlo.dynamic_update_slice %0, %u, %j, %i
      : (tensor<20x30xf32>, tensor<5x6xf32>, tensor<i32>, tensor<i32>) -> tensor<20x30xf32>
  return %1""",
    )
    kernel = emit(fusion_of(text))
    assert kernel.choice.kind.value == "loop"
    x, u = np.zeros((20, 30), np.float32), np.arange(1, 31, dtype=np.float32).reshape(5, 6)
    (actual,) = kernel.run(x, u, np.int32(3), np.int32(4))
    np.testing.assert_array_equal(actual, updated(updated(x, u, 3, 4), u, 4, 3))


TURNED_LAYOUT = """HloModule turned
ENTRY main {
  x = f32[20,20]{1,0} parameter(0)
  i = s32[] parameter(1)
  y = f32[20,20]{0,1} bitcast(x)
  u = f32[5,6]{1,0} dynamic-slice(x, i, i), dynamic_slice_sizes={5,6}
  v = f32[5,6]{1,0} add(u, u)
  ROOT r = f32[20,20]{0,1} dynamic-update-slice(y, v, i, i)
}
"""


def test_equal_indices_under_another_layout_are_other_elements() -> None:
    """Element (1, 2) of a transposed view of the parameter is element (2, 1): an update by what it reads is a loop."""
    kernel = emit(read_fusion(TURNED_LAYOUT))
    assert kernel.choice.kind.value == "loop"
    x = np.arange(400, dtype=np.float32).reshape(20, 20)
    (actual,) = kernel.run(x, np.int32(3))
    np.testing.assert_array_equal(actual, updated(x.T, 2 * x[3:8, 3:9], 3, 3))
