"""Machine code of the host."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import ml_dtypes
import numpy as np
from xdsl.dialects import llvm

from shardy_py.errors import OptionError, VerificationError
from shardy_py.kernels import emit
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower import host
from shardy_py.kernels.lower.host import HostKernel
from shardy_py.kernels.lower.host_grid import GRID, grid_text
from shardy_py.kernels.lower.host_phases import HostPhases
from shardy_py.kernels.lower.machine import parse
from shardy_py.kernels.lower.phases import DONE
from shardy_py.kernels.run.memory import ALIGNMENT, aligned
from tests.unit.kernels.fusions import ADD_SLICE_PAD, LOG_TRANSPOSE_ADD, NEGATE, SUM, TRANSPOSE, fusion_of

COMBINE = """
func.func @main(%x: tensor<{n}x{type}>, %y: tensor<{n}x{type}>) -> tensor<{n}x{type}> {{
  %0 = stablehlo.{op} %x, %y : tensor<{n}x{type}>
  return %0 : tensor<{n}x{type}>
}}"""
CONVERT = """
func.func @main(%x: tensor<{n}x{source}>) -> tensor<{n}x{type}> {{
  %0 = stablehlo.convert %x : (tensor<{n}x{source}>) -> tensor<{n}x{type}>
  return %0 : tensor<{n}x{type}>
}}"""
CONSTANT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<[1.0, 2.0, 4.0, 8.0]> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
SPECIAL = [0.0, -0.0, 1.0, 1.00390625, 1.01171875, 3.3e38, 1e-40, -2.5, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("text", [NEGATE.format(shape="300"), ADD_SLICE_PAD, CONSTANT])
def test_the_host_gives_the_interpreters_bits(text: str) -> None:
    """Machine code gives what the interpreter gives, with branches, constants and more threads than elements."""
    fusion = fusion_of(text)
    kernel = emit(fusion)
    random = np.random.default_rng(0)
    arrays = [random.normal(0, 1, value.shape).astype(np.float32) for value in fusion.parameters]
    np.testing.assert_array_equal(kernel.run(*arrays, on="host"), kernel.run(*arrays))


def test_functions_of_the_library() -> None:
    """Functions that no processor has come from the C library; one that is called twice stays a function."""
    kernel = emit(fusion_of(LOG_TRANSPOSE_ADD.format(n=9)))
    x = np.linspace(1, 5, 81, dtype=np.float32).reshape(9, 9)
    (actual,) = kernel.run(x, on="host")
    np.testing.assert_allclose(actual, np.log(x) + np.log(x).T, rtol=1e-6)


@pytest.mark.parametrize("op", ["add", "multiply", "divide", "maximum"])
def test_bf16_is_rounded_by_integers(op: str) -> None:
    """bf16 is computed in f32 and rounded to the nearest, halves to even; small numbers are kept."""
    dtype = ml_dtypes.bfloat16
    x, y = (each.reshape(-1).astype(dtype) for each in np.meshgrid(SPECIAL, SPECIAL))
    (actual,) = emit(fusion_of(COMBINE.format(n=len(x), type="bf16", op=op))).run(x, y, on="host")
    with np.errstate(all="ignore"):
        exact = getattr(np, op)(x.astype(np.float32), y.astype(np.float32)).astype(dtype)
    same = (actual == exact) | (np.isnan(actual) & np.isnan(exact))
    assert same.all()


@pytest.mark.parametrize(("type_", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_f64_is_rounded_once(type_: str, dtype: type) -> None:
    """A f64 just beside a tie of the short type is rounded to its own side, not by way of f32."""
    step = float(ml_dtypes.finfo(dtype).eps)
    x = np.array([1 + step / 2 + tiny for tiny in (0, 1e-12, -1e-12)] + [1e300, -1e300, np.inf, 0.1])
    (actual,) = emit(fusion_of(CONVERT.format(n=len(x), source="f64", type=type_))).run(x, on="host")
    expected = np.array([1, 1 + step, 1, np.inf, -np.inf, np.inf, 0.1]).astype(dtype)
    np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(np.float64))


def test_arrays_that_do_not_fit() -> None:
    """Buffers of other sizes than the kernel's are an error; a stage of MLIR does not run on the host."""
    kernel = emit(fusion_of(NEGATE.format(shape="300")))
    with pytest.raises(VerificationError, match="takes buffers of 1200, 1200 bytes, there are 1200, 40"):
        kernel.host.run_into([np.zeros(300, np.float32), np.zeros(10, np.float32)])
    with pytest.raises(OptionError, match="the host runs the last stage only"):
        kernel.run(np.zeros(300, np.float32), on="host", stage="initial")
    with pytest.raises(OptionError, match="does not run text for LLVM"):
        kernel.run(np.zeros(300, np.float32), stage="to-llvm")


def test_arrays_are_aligned() -> None:
    """An array that does not stand where the kernel relies on it is copied; one that does is not."""
    array = aligned(np.arange(1000, dtype=np.float32))
    assert array.ctypes.data % ALIGNMENT == 0
    assert aligned(array) is array
    moved = aligned(array[1:])
    assert moved.ctypes.data % ALIGNMENT == 0
    np.testing.assert_array_equal(moved, array[1:])


def test_every_thread_of_the_grid_runs_once() -> None:
    """The loops go over all blocks and threads, along all of their dimensions."""
    launch = Launch((3, 2, 2), (4, 3, 2))
    ids = ", ".join(f"i32 %{kind}.{axis}" for kind in ("thread", "block") for axis in "xyz")
    body = [f"define internal i32 @count(ptr %p, {ids}, i32 %thread, i32 %strip, i32 %lane) {{"]
    terms = ["%thread.x"]
    for size, name in zip(
        (4, 12, 24, 72, 144), ("%thread.y", "%thread.z", "%block.x", "%block.y", "%block.z"), strict=True
    ):
        number = len(body)
        body += [f"  %m{number} = mul i32 {name}, {size}", f"  %s{number} = add i32 {terms[-1]}, %m{number}"]
        terms.append(f"%s{number}")
    body += [f"  %q = getelementptr i32, ptr %p, i32 {terms[-1]}", "  %o = load i32, ptr %q", "  %n = add i32 %o, 1"]
    body += ["  store i32 %n, ptr %q", "  ret i32 -1", "}"]
    phases = HostPhases(("count",), ((DONE,),), (), frozenset(), 24, (2,), ((2, 2),))
    text = "\n".join(body) + "\n" + grid_text(phases, 1, launch)
    parse(text)
    counts = np.zeros(288, np.int32)
    HostKernel(text, "count", 12, [counts.nbytes], [0]).run_into([counts])
    assert (counts == 1).all()
    assert f"@{GRID}" in text


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        (SUM.format(shape="8x1024", result="8", dim=1), True),
        (TRANSPOSE.format(shape="64x96", result="96x64", dims="1, 0", dtype="f32"), False),
    ],
)
def test_only_kernels_whose_lanes_exchange_values_ask_for_whole_vectors(text: str, is_whole: bool) -> None:
    """Sums are faster in the widest vectors of a processor, tiles of transposes in those that LLVM prefers."""
    assert ('"prefer-vector-width"="512"' in emit(fusion_of(text)).host.llvm) is is_whole


@pytest.mark.parametrize(
    ("op", "numbers", "expected"),
    [
        (
            "sqrt",
            [1.5e308 + 1.5e308j, 1e-320j, complex(-np.inf, 1)],
            [1.34561e154 + 5.5737e153j, 7.07103e-161 + 7.07103e-161j, complex(0, np.inf)],
        ),
        ("log", [1.5e308 + 1.5e308j, 5e-324], [709.948 + 0.7854j, -744.44]),
        ("exponential", [710 + 1.5707963j, complex(-np.inf, np.inf)], [complex(5.985e300, np.inf), 0]),
        ("log_plus_one", [1e200 + 1e200j, 1e-300], [460.8636 + 0.7854j, 1e-300]),
        ("log_plus_one", [-1 + 1e-8j, -1 + 1e-300j], [-18.42068 + 1.570796j, -690.7755 + 1.570796j]),
    ],
)
def test_complex_numbers_of_double_precision(op: str, numbers: list[complex], expected: list[complex]) -> None:
    """Functions of complex numbers keep the range of their type."""
    type_ = f"tensor<{len(numbers)}xcomplex<f64>>"
    text = f"func.func @main(%x: {type_}) -> {type_} {{ %0 = stablehlo.{op} %x : {type_} return %0 : {type_} }}"
    (actual,) = emit(fusion_of(text)).run(np.array(numbers, np.complex128), on="host")
    reference = np.array(expected, np.complex128)
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(actual), part(reference), rtol=1e-3, atol=1e-305)


def test_small_kernels_begin_with_code_that_is_compiled_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later runs are optimized code's, but of many branches, with the same results; large kernels begin there."""
    compiled = []
    linked = host._linked

    def noted(text: str, name: str, *, is_quick: bool) -> tuple[Any, Any]:
        compiled.append(is_quick)
        return linked(text, name, is_quick=is_quick)

    monkeypatch.setattr(host, "_linked", noted)
    monkeypatch.setattr(host, "QUICK_RUNS", 2)
    x = np.arange(300, dtype=np.float32)
    for most, branches, expected in ((2400, False, [True, False]), (2400, True, [True]), (2399, False, [False])):
        monkeypatch.setattr(host, "SMALL_BYTES", most)
        monkeypatch.setattr(host, "has_many_branches", lambda module, branches=branches: branches)
        kernel = emit(fusion_of(NEGATE.format(shape="300")))
        for _ in range(4):
            np.testing.assert_array_equal(kernel.run(x, on="host")[0], -x)
        assert compiled == expected
        compiled.clear()


@pytest.mark.parametrize(("rows", "scalar"), [(64, {0}), (512, set())])
def test_columns_of_many_rows_are_read_in_vectors(rows: int, scalar: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that write neighbours apart stay scalar only where they read little."""
    phases: list[HostPhases] = []

    def noted(items: HostPhases, buffers: int, launch: Launch) -> str:
        phases.append(items)
        return grid_text(items, buffers, launch)

    monkeypatch.setattr(host, "grid_text", noted)
    kernel = emit(fusion_of(SUM.format(shape=f"{rows}x2048", result="2048", dim=0)))
    host.host_text(kernel.module(), kernel.launch)
    assert phases[0].scalar == scalar


def test_the_grid_has_loops_of_several_steps_only() -> None:
    """A dimension of one thread is no loop, and no array is stored as a whole: both cost LLVM much of its time."""
    kernel = emit(fusion_of(SUM.format(shape="8x4096", result="8", dim=1)))
    text = host.host_text(kernel.module(), kernel.launch)
    assert kernel.launch.threads[1:] == (1, 1)
    assert "phase0.lane.head:" in text
    assert "phase0.y.head:" not in text
    assert "call void @llvm.memset.p0.i64(ptr %left" in text
    assert "x i8] zeroinitializer" not in text


def test_loops_of_many_steps_stay_loops() -> None:
    """What devices repeat in the text the host does in a loop, with the same bits; short loops are repeated by both."""
    kernel = emit(fusion_of(SUM.format(shape="24x600", dim=0, result="600")))
    loads = [
        sum(isinstance(op, llvm.LoadOp) for op in kernel.module(for_host=is_host).walk()) for is_host in (True, False)
    ]
    assert loads == [1, 24]
    x = np.linspace(-1, 1, 24 * 600, dtype=np.float32).reshape(24, 600)
    np.testing.assert_array_equal(*(kernel.run(x, on=way)[0] for way in ("host", "interpreter")))
