"""Kernels of the reduction emitter compute sums, maxima and their places, for rows and columns of many sizes."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np
from attrs import evolve

from shardy_py.kernels import emit, get_device
from shardy_py.kernels.fusion.choose import EmitterKind
from shardy_py.kernels.reasons import explain
from tests.unit.kernels.fusions import fusion_of

SUM = """
func.func @main(%x: tensor<{shape}xi32>) -> tensor<{result}xi32> {{
  %cst = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %cst) applies stablehlo.add across dimensions = {dims}
      : (tensor<{shape}xi32>, tensor<i32>) -> tensor<{result}xi32>
  return %0 : tensor<{result}xi32>
}}"""

SHAPES = [
    pytest.param((40, 8), (1,), id="several rows per warp"),
    pytest.param((300, 2), (1,), id="a row per thread"),
    pytest.param((5, 300), (1,), id="a row per warp"),
    pytest.param((5, 1300), (1,), id="several warps per row"),
    pytest.param((2, 3, 700), (0, 2), id="rows in several parts"),
    pytest.param((3, 4096), (1,), id="a row per block"),
    pytest.param((2, 20000), (1,), id="rows longer than XLA's"),
    pytest.param((300, 8), (0,), id="columns within a warp"),
    pytest.param((3, 301, 2), (1,), id="short columns in several parts"),
    pytest.param((3, 301, 40), (1,), id="columns"),
    pytest.param((130, 192), (0,), id="columns by vectors"),
]


@pytest.mark.parametrize(("shape", "dims"), SHAPES)
def test_sums_are_those_of_numpy(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """Every element is added once, before any pass and after the last one."""
    result = [size for number, size in enumerate(shape) if number not in dims]
    names = {"shape": "x".join(map(str, shape)), "result": "x".join(map(str, result)), "dims": str(list(dims))}
    kernel = emit(fusion_of(SUM.format(**names)))
    assert kernel.choice.kind is EmitterKind.REDUCTION
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) % 1009 - 500
    for stage in ("initial", None):
        (actual,) = kernel.run(x, stage=stage)
        np.testing.assert_array_equal(actual, x.sum(dims, dtype=np.int32))


@pytest.mark.parametrize(("shape", "dims"), [((2, 2500), (1,)), ((130, 192), (0,)), ((300, 8), (0,))])
def test_warps_of_64_threads_combine_their_lanes(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """On a device of AMD a warp combines 64 lanes, in the interpreter and on the host."""
    pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")
    names = {"shape": "x".join(map(str, shape)), "result": str(shape[1 - dims[0]]), "dims": str(list(dims))}
    kernel = emit(fusion_of(SUM.format(**names)), device="mi300x")
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) % 1009 - 500
    for (result,) in (kernel.run(x, stage="initial"), kernel.run(x, on="host")):
        np.testing.assert_array_equal(result, x.sum(dims, dtype=np.int32))


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        pytest.param((30, 2), (1,), id="short rows"),
        pytest.param((5, 300), (1,), id="rows"),
        pytest.param((2, 3, 70), (0, 2), id="rows in several parts"),
        pytest.param((70, 8), (0,), id="several rows of columns at once"),
        pytest.param((2, 261, 2), (1,), id="short columns in several parts"),
        pytest.param((3, 51, 40), (1,), id="columns"),
        pytest.param((41, 150), (0,), id="two strips"),
        pytest.param((41, 257), (0,), id="three strips, the last one shorter"),
    ],
)
def test_threads_without_warps_reduce_by_themselves(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """On a device without warps a block is one thread, which adds every element once and waits for nobody."""
    pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")
    result = [size for number, size in enumerate(shape) if number not in dims]
    names = {"shape": "x".join(map(str, shape)), "result": "x".join(map(str, result)), "dims": str(list(dims))}
    kernel = emit(fusion_of(SUM.format(**names)), device=evolve(get_device("host"), shared_bytes=400))
    assert kernel.choice.kind is EmitterKind.REDUCTION
    assert kernel.launch.threads == (1, 1, 1)
    assert "sync_threads" not in kernel.stage("initial")
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape) % 1009 - 500
    for (actual,) in (kernel.run(x, stage="initial"), kernel.run(x), kernel.run(x, on="host")):
        np.testing.assert_array_equal(actual, x.sum(dims, dtype=np.int32))


@pytest.mark.parametrize(
    ("shape", "dim", "line"),
    [
        ("3x1000", 1, "strip: a thread reduces a row by itself; partial results for each row: 64"),
        ("70x8", 0, "strip: a thread reduces 8 columns by itself; partial results for each column: 8"),
        ("99x9000", 0, "strip: a thread reduces 4500 columns by itself; partial results for each column: 1"),
    ],
)
def test_a_strip_is_explained(shape: str, dim: int, line: str) -> None:
    """What a thread without a warp reduces follows from the memory and the lanes of the device."""
    result = shape.split("x")[1 - dim]
    kernel = emit(fusion_of(SUM.format(shape=shape, result=result, dims=f"[{dim}]")), device="host")
    assert line in explain(kernel)


def test_partial_results_are_combined_in_order() -> None:
    """A sum on the device ``host`` adds every 64th element, then these sums from the first one on."""
    pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")
    text = SUM.format(shape="3x1000", result="3", dims="[1]").replace("i32", "f32").replace("<0>", "<0.0>")
    x = np.random.default_rng(2).standard_normal((3, 1000)).astype(np.float32)
    padded = np.zeros((3, 1024), np.float32)
    padded[:, :1000] = x
    total = np.zeros(3, np.float32)
    for partial in np.add.accumulate(padded.reshape(3, 16, 64), axis=1)[:, -1].T:
        total += partial
    kernel = emit(fusion_of(text), device="host")
    for (actual,) in (kernel.run(x), kernel.run(x, on="host")):
        np.testing.assert_array_equal(actual, total)


@pytest.mark.parametrize("width", [1300, 4096])
def test_warps_that_are_done_leave_the_others_alone(width: int) -> None:
    """On the host warps are done while the first one adds up what all of them found."""
    pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")
    x = np.arange(3 * width, dtype=np.int32).reshape(3, width) % 1009 - 500
    (actual,) = emit(fusion_of(SUM.format(shape=f"3x{width}", result="3", dims="[1]"))).run(x, on="host")
    np.testing.assert_array_equal(actual, x.sum(1, dtype=np.int32))


ARGMAX = """
func.func @main(%x: tensor<20x3000xf32>) -> (tensor<20xf32>, tensor<20xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<20x3000xi32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %low), (%i init: %zero) across dimensions = [1]
      : (tensor<20x3000xf32>, tensor<20x3000xi32>, tensor<f32>, tensor<i32>) -> (tensor<20xf32>, tensor<20xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%m: tensor<i32>, %n: tensor<i32>) {
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
      %3 = stablehlo.select %1, %m, %n : tensor<i1>, tensor<i32>
      stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
    }
  return %0#0, %0#1 : tensor<20xf32>, tensor<20xi32>
}"""


@pytest.mark.parametrize("device", ["h100", "host"])
def test_a_variadic_reduction_combines_all_its_values(device: str) -> None:
    """A maximum and its place are reduced together."""
    x = np.random.default_rng(0).permutation(60000).reshape(20, 3000).astype(np.float32)
    largest, place = emit(fusion_of(ARGMAX), device=device).run(x)
    np.testing.assert_array_equal(largest, x.max(1))
    np.testing.assert_array_equal(place, x.argmax(1))


SEVERAL = """
func.func @main(%x: tensor<50x96xi32>, %y: tensor<50x96xi32>)
    -> (tensor<50xi32>, tensor<50xi32>, tensor<50x96xi32>, tensor<10x5xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.add %x, %x : tensor<50x96xi32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<50x96xi32>, tensor<i32>) -> tensor<50xi32>
  %2 = stablehlo.negate %1 : tensor<50xi32>
  %3 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1]
      : (tensor<50x96xi32>, tensor<i32>) -> tensor<50xi32>
  %4 = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<50x96xi32>, tensor<i32>) -> tensor<50xi32>
  %5 = stablehlo.reshape %4 : (tensor<50xi32>) -> tensor<10x5xi32>
  return %2, %3, %0, %5 : tensor<50xi32>, tensor<50xi32>, tensor<50x96xi32>, tensor<10x5xi32>
}"""


@pytest.mark.parametrize("device", ["h100", "host"])
def test_groups_of_roots_are_written_by_blocks_of_their_own(device: str) -> None:
    """Reductions that share nothing run side by side; epilogues and other roots are written with their group."""
    kernel = emit(fusion_of(SEVERAL), device=device)
    assert kernel.launch.blocks[2] == 2
    assert len(kernel.maps) == 2
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-99, 99, (50, 96), np.int32) for _ in range(2))
    for stage in ("initial", None):
        negated, largest, doubled, total = kernel.run(x, y, stage=stage)
        np.testing.assert_array_equal(negated, -2 * x.sum(1))
        np.testing.assert_array_equal(largest, np.maximum(x.max(1), 0))
        np.testing.assert_array_equal(doubled, 2 * x)
        np.testing.assert_array_equal(total, y.sum(1).reshape(10, 5))


def test_a_parameter_may_be_written_beside_a_reduction() -> None:
    """A root that is a parameter is read where it is written."""
    kernel = emit(
        fusion_of("""
func.func @main(%x: tensor<50x96xi32>, %y: tensor<50x96xi32>) -> (tensor<50xi32>, tensor<50x96xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<50x96xi32>, tensor<i32>) -> tensor<50xi32>
  return %0, %y : tensor<50xi32>, tensor<50x96xi32>
}""")
    )
    x = np.arange(50 * 96, dtype=np.int32).reshape(50, 96)
    total, copied = kernel.run(x, x + 1)
    np.testing.assert_array_equal(total, x.sum(1))
    np.testing.assert_array_equal(copied, x + 1)
