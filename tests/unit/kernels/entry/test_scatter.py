"""Kernels of scatters."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit, read_fusions
from shardy_py.kernels.kernel import Kernel
from tests.unit.kernels.fusions import fusion_of

SCATTER = """
func.func @main(%x: tensor<{size}x{width}x{type}>, %at: tensor<{n}x1xi32>, %u: tensor<{n}x{width}x{type}>)
    -> tensor<{size}x{width}x{type}> {{
  %v = stablehlo.reshape %u : (tensor<{n}x{width}x{type}>) -> tensor<{n}x1x{width}x{type}>
  %0 = "stablehlo.scatter"({operand}, %at, %v) <{{indices_are_sorted = {sorted}, unique_indices = {unique},
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<{type}>, %b: tensor<{type}>):
      %s = stablehlo.{op} %a, %b : tensor<{type}>
      stablehlo.return %s : tensor<{type}>
    }}) : (tensor<{size}x{width}x{type}>, tensor<{n}x1xi32>, tensor<{n}x1x{width}x{type}>)
      -> tensor<{size}x{width}x{type}>
  return %0 : tensor<{size}x{width}x{type}>
}}"""


def kernel_of(n: int, size: int, width: int, **more: Any) -> Kernel:
    """The kernel of a scatter of n rows into a matrix."""
    options = {"type": "f32", "op": "add", "sorted": "false", "unique": "false", "operand": "%x"} | more
    return emit(fusion_of(SCATTER.format(n=n, size=size, width=width, **options)))


def scattered(x: np.ndarray, at: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The sums of rows; those at places outside of the matrix are left out."""
    actual = x.copy()
    for row, values in zip(at[:, 0], u, strict=True):
        if 0 <= row < len(x):
            actual[row] += values
    return actual


def arrays(n: int, size: int, width: int, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix, places of which some are outside of it, and rows of small integers."""
    random = np.random.default_rng(n)
    x, u = (random.integers(-3, 4, (count, width)).astype(dtype) for count in (size, n))
    return x, random.integers(-2, size + 2, (n, 1)).astype(np.int32), u


@pytest.mark.parametrize("on", ["interpreter", "host"])
@pytest.mark.parametrize(("type_", "dtype"), [("f32", np.float32), ("i32", np.int32)])
def test_rows_are_added_at_places(type_: str, dtype: Any, on: str) -> None:
    """Rows that go to one place are all added; those outside are left out, and the given matrix stays as it is."""
    x, at, u = arrays(30, 7, 5, dtype)
    before = x.copy()
    (actual,) = kernel_of(30, 7, 5, type=type_).run(x, at, u, on=on)  # type: ignore[arg-type]
    np.testing.assert_array_equal(actual, scattered(x, at, u))
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("stage", ["initial", "lower-loops-to-scf", "lower-tensors", "scf-to-cf"])
def test_every_stage_adds(stage: str) -> None:
    """The stages give the same sums."""
    x, at, u = arrays(30, 7, 5)
    (actual,) = kernel_of(30, 7, 5).run(x, at, u, stage=stage)
    np.testing.assert_array_equal(actual, scattered(x, at, u))


def test_unique_places_need_no_atomic_update() -> None:
    """Where no place is named twice, elements are read, combined and written; a lie about that is a race."""
    kernel = kernel_of(30, 40, 5, unique="true")
    assert "atomic_rmw" not in kernel.stage("initial")
    x, _, u = arrays(30, 40, 5)
    at = np.random.default_rng(0).permutation(40)[:30, np.newaxis].astype(np.int32)
    (actual,) = kernel.run(x, at, u)
    np.testing.assert_array_equal(actual, scattered(x, at, u))


# 700 sorted places are more than the warps of the device, of which 22 begin a row of the matrix each.
@pytest.mark.parametrize("on", ["interpreter", "host"])
@pytest.mark.parametrize("width", [5, 64, 70])
def test_sorted_places_are_added_up_first(width: int, on: str) -> None:
    """A warp adds rows up while their place is the same, and updates the matrix once for each."""
    kernel = kernel_of(700, 22, width, sorted="true")
    x, at, u = arrays(700, 22, width)
    order = np.argsort(at[:, 0], kind="stable")
    (actual,) = kernel.run(x, at[order], u[order], on=on)  # type: ignore[arg-type]
    np.testing.assert_array_equal(actual, scattered(x, at, u))


def test_warps_with_one_place_add_nothing_up() -> None:
    """Where there are more rows than places, a warp has one place, and its lanes add the window to the matrix."""
    kernel = kernel_of(600, 700, 64, sorted="true")
    assert "iter_args" in kernel.stage("initial")
    assert "vector<" not in kernel.stage("initial")
    x, at, u = arrays(600, 700, 64)
    order = np.argsort(at[:, 0], kind="stable")
    (actual,) = kernel.run(x, at[order], u[order], on="host")
    np.testing.assert_array_equal(actual, scattered(x, at, u))


def test_lanes_take_as_many_neighbours_as_windows_have() -> None:
    """A lane takes up to 128 bits of neighbours if all lanes have some."""
    wide, narrow = (kernel_of(700, 22, width, sorted="true") for width in (256, 96))
    assert "atom.global.v4.f32.add" in wide.ptx
    assert ".v4.f32.add" not in narrow.ptx


ASSIGNED = """
func.func @main(%x: tensor<40xf32>, %at: tensor<9x1xi32>, %u: tensor<9xf32>) -> tensor<40xf32> {
  %v = stablehlo.reshape %u : (tensor<9xf32>) -> tensor<9x1xf32>
  %0 = "stablehlo.scatter"(%x, %at, %v) <{indices_are_sorted = false, unique_indices = false,
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
    }) : (tensor<40xf32>, tensor<9x1xi32>, tensor<9x1xf32>) -> tensor<40xf32>
  return %0 : tensor<40xf32>
}"""


def test_arguments_that_a_region_leaves_unused_have_functions() -> None:
    """An assignment does not use the old element, which is a function of its own that later passes erase."""
    stages = emit(fusion_of(ASSIGNED)).stages
    assert "_region_0_param_0" in stages["initial"]
    assert "_region_0_param_0" not in stages["03.erase-dead-functions"]


@pytest.mark.parametrize("stage", ["initial", "vectorize-loads-stores", "lower-tensors", "scf-to-cf"])
def test_every_stage_adds_sorted_places(stage: str) -> None:
    """The stages give the same sums, also those with vectors of atomic additions."""
    kernel = kernel_of(700, 22, 64, sorted="true")
    x, at, u = arrays(700, 22, 64)
    order = np.argsort(at[:, 0], kind="stable")
    (actual,) = kernel.run(x, at[order], u[order], stage=stage)
    np.testing.assert_array_equal(actual, scattered(x, at, u))


def test_neighbours_are_added_at_once() -> None:
    """A device of sm_90 adds two neighbours at once; an older one adds them one by one."""
    kernel = kernel_of(700, 22, 64, sorted="true")
    assert "atom.global.v2.f32.add" in kernel.ptx
    older = emit(kernel.fusion, device="a100").ptx
    assert ".v2.f32.add" not in older
    assert "atom.global.add.f32" in older


def test_scatters_of_another_form_are_refused() -> None:
    """An operand that the kernel computes itself is not memory that it can update."""
    text = SCATTER.format(
        n=3, size=4, width=5, type="f32", op="add", sorted="false", unique="false", operand="%y"
    ).replace("  %v =", "  %y = stablehlo.negate %x : tensor<4x5xf32>\n  %v =")
    with pytest.raises(UnsupportedError, match="its operand is computed"):
        assert emit(fusion_of(text)).stages


def test_pieces_end_with_scatters_that_kernels_take() -> None:
    """A program's scatter is a piece, whose operand another kernel computes before where the program computes it."""
    options = {"n": 3, "size": 4, "width": 5, "type": "f32", "op": "add", "sorted": "false", "unique": "false"}
    scatter = SCATTER.format(operand="%x", **options)
    computed = SCATTER.format(operand="%y", **options).replace(
        "  %v =", "  %y = stablehlo.negate %x : tensor<4x5xf32>\n  %v ="
    )
    assert [emit(piece).choice.kind.value for piece in read_fusions(scatter)][-1] == "scatter"
    assert [emit(piece).choice.kind.value for piece in read_fusions(computed)] == ["loop", "scatter"]


READS_OPERAND = """
func.func @main(%x: tensor<30x4xi32>, %at: tensor<20x1xi32>) -> tensor<30x4xi32> {
  %s = stablehlo.slice %x [0:20, 0:4] : (tensor<30x4xi32>) -> tensor<20x4xi32>
  %u = stablehlo.reshape %s : (tensor<20x4xi32>) -> tensor<20x1x4xi32>
  %c = stablehlo.slice %x [0:20, 0:1] : (tensor<30x4xi32>) -> tensor<20x1xi32>
  %0 = "stablehlo.scatter"(%x, INDICES, UPDATES) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %n = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %n : tensor<i32>
    }) : (tensor<30x4xi32>, tensor<20x1xi32>, tensor<20x1x4xi32>) -> tensor<30x4xi32>
  return %0 : tensor<30x4xi32>
}"""


@pytest.mark.parametrize(("indices", "updates"), [("%at", "%u"), ("%c", "%u"), ("%c", "%w")])
def test_updates_that_read_the_operand_update_a_copy(indices: str, updates: str) -> None:
    """Elements of the operand may be updated before they are read: a copy is updated, or other kernels read them."""
    text = READS_OPERAND.replace("INDICES", indices).replace("UPDATES", updates)
    if updates == "%w":
        text = text.replace("%at: tensor<20x1xi32>", "%w: tensor<20x1x4xi32>")
    kernel = emit(fusion_of(text))
    assert kernel.fusion.copied == (0,)
    x = np.random.default_rng(4).integers(0, 40, (30, 4)).astype(np.int32)
    at = np.random.default_rng(5).integers(-3, 33, (20, 1)).astype(np.int32)
    w = np.random.default_rng(6).integers(0, 9, (20, 1, 4)).astype(np.int32)
    operand = w if updates == "%w" else at
    actual = [kernel.run(x, operand, on=on)[0] for on in ("host", "interpreter")]
    rows = x[:20, :1] if indices == "%c" else at
    want = scattered(x, rows, w[:, 0] if updates == "%w" else x[:20])
    for array in actual:
        np.testing.assert_array_equal(array, want)
    *others, last = [emit(piece) for piece in read_fusions(text)]
    assert others
    assert last.choice.kind.value == "scatter"
    assert last.stages


@pytest.mark.parametrize("op", ["add", "subtract"])
def test_windows_are_added_up_first_only_by_regions_that_allow_it(op: str) -> None:
    """Differences of sorted places are taken one by one: ``x - (u - v)`` is not ``x - u - v``."""
    kernel = kernel_of(700, 22, 5, sorted="true", op=op, type="i32")
    assert ("vector<" in kernel.stage("initial")) is (op == "add")
    x, at, u = arrays(700, 22, 5, np.int32)
    order = np.argsort(at[:, 0], kind="stable")
    (actual,) = kernel.run(x, at[order], u[order])
    np.testing.assert_array_equal(actual, scattered(x, at, u if op == "add" else -u))


def test_threads_behind_the_last_window_read_nothing() -> None:
    """A block has whole warps: 26 of 32 threads have no window, and the guard that keeps them apart is not folded."""
    for stage in (None, "initial"):
        x, at, u = arrays(3, 4, 2)
        (actual,) = kernel_of(3, 4, 2).run(x, at, u, stage=stage)
        np.testing.assert_array_equal(actual, scattered(x, at, u))


def test_places_without_a_sign_behind_the_last_row() -> None:
    """LLVM does not take a place with its highest bit for a small one, for which it would leave out the comparison."""
    text = SCATTER.format(n=2, size=200, width=400, type="f32", op="add", sorted="false", unique="false", operand="%x")
    kernel = emit(fusion_of(text.replace("x1xi32>", "x1xui8>")))
    assert "zext i8" in kernel.llvm
    assert "zext nneg i8" not in kernel.llvm
    x, _, u = arrays(2, 200, 400)
    at = np.array([[199], [200]], np.uint8)
    # The buffers are large enough for all passes of LLVM on the host.
    (actual,) = kernel.run(x, at, u, on="host")
    np.testing.assert_array_equal(actual, scattered(x, at, u))
