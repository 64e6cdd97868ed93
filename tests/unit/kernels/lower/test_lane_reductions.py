"""Reductions over the lanes of warps on the host, as loops over their steps."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import ml_dtypes
import numpy as np

from shardy_py.errors import UnsupportedError
from shardy_py.kernels import emit
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.host import compile_host, host_text
from shardy_py.kernels.lower.lane_reductions import LaneReduction
from shardy_py.kernels.run.kernel import run_kernel
from tests.unit.kernels import shared_kernels as kernels
from tests.unit.kernels.fusions import fusion_of
from tests.unit.kernels.module_texts import run_host_pipeline

BF16 = np.dtype(ml_dtypes.bfloat16)


def lanes_text(threads: int, types: tuple[str, ...], sizes: tuple[int, ...], body: str, distance: int = 16) -> str:
    """A kernel in which each thread of two blocks reads values, combines them over lanes, and writes what it has."""
    count, several = 2 * threads, ", ".join(types)
    tensors = [f"tensor<{count}x{type_}>" for type_ in types]
    inputs = [
        f"%x{n}: {tensor} {kernels.argument(n, count * size, is_read=True)}"
        for n, (tensor, size) in enumerate(zip(tensors, sizes, strict=True))
    ]
    outputs = [
        f"%o{n}: {tensor} {kernels.argument(len(types) + n, count * size)}"
        for n, (tensor, size) in enumerate(zip(tensors, sizes, strict=True))
    ]
    lines = [f"%v{n} = tensor.extract %x{n}[%i] : {tensor}" for n, tensor in enumerate(tensors)]
    values, results = (", ".join(f"%{name}{n}" for n in range(len(types))) for name in ("v", "s"))
    lines.append(f"{results} = xla_gpu.shuffle_reduce({values}) to {distance} combiner=@combine : {several}")
    lines += [f"%r{n} = tensor.insert %s{n} into %o{n}[%i] : {tensor}" for n, tensor in enumerate(tensors)]
    returned = ", ".join(f"%r{n}" for n in range(len(types)))
    arguments = ", ".join(f"%{side}{n}: {type_}" for side in "ab" for n, type_ in enumerate(types))
    return f"""builtin.module {{
  func.func @main({", ".join((*inputs, *outputs))}) -> ({", ".join(tensors)}) attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, {threads - 1} : index]}}
    %bl = gpu.block_id x {{xla.range = [0 : index, 1 : index]}}
    %i = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d1 * {threads} + d0), domain: "
        "d0 in [0, {threads - 1}], d1 in [0, 1]">(%th, %bl)
    {chr(10).join(lines)}
    func.return {returned} : {", ".join(tensors)}
  }}
  func.func private @combine({arguments}) -> ({several}) {{
    {body}
    func.return {", ".join(f"%c{n}" for n in range(len(types)))} : {several}
  }}
}}"""


def check(text: str, threads: int, *arrays: Any) -> list[Any]:
    """Check that all threads have on the host what the interpreter gives them, and return that."""
    launch = Launch((2, 1, 1), (threads, 1, 1))
    outputs = [(array.shape, array.dtype) for array in arrays]
    expected = run_kernel(parse_kernel_module(text), launch, list(arrays), outputs)
    module = parse_kernel_module(text)
    run_host_pipeline(module)
    actual = compile_host(module, launch).run(list(arrays), outputs)
    for want, got in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(got, want)
    return expected


@pytest.mark.parametrize("distance", [1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize("threads", [32, 40, 96])
def test_every_lane_has_its_value(threads: int, distance: int) -> None:
    """Lanes without another one further down, in a warp or in the block, combine with themselves; order counts."""
    x = np.random.default_rng(1).integers(-100, 100, 2 * threads).astype(np.int32)
    body = "%d = arith.addi %a0, %a0 : i32\n    %c0 = arith.subi %d, %b0 : i32"
    text = lanes_text(threads, ("i32",), (4,), body, distance)
    (want,) = check(text, threads, x)
    step, lanes = x.astype(np.int64), np.arange(2 * threads) % threads
    while distance:
        exists = (lanes % 32 + distance < 32) & (lanes + distance < threads)
        step, distance = 2 * step - step[np.arange(2 * threads) + exists * distance], distance // 2
    np.testing.assert_array_equal(want, step.astype(np.int32))


@pytest.mark.parametrize(
    ("type_", "dtype", "op"),
    [
        ("f32", "f4", "arith.addf"),
        ("f64", "f8", "arith.addf"),
        ("f16", "f2", "arith.addf"),
        ("bf16", BF16, "arith.addf"),
        ("i8", "i1", "arith.addi"),
        ("i64", "i8", "arith.addi"),
        ("complex<f32>", "c8", "complex.add"),
    ],
)
def test_values_of_all_types(type_: str, dtype: Any, op: str) -> None:
    """Values have one word each in memory, whatever their type."""
    x = np.random.default_rng(2).integers(-9, 9, 128).astype(dtype)
    check(lanes_text(64, (type_,), (x.itemsize,), f"%c0 = {op} %a0, %b0 : {type_}"), 64, x)


def test_several_values_and_a_branch() -> None:
    """Values are combined together, by a function with branches; a condition takes a byte in memory."""
    body = """%more = arith.cmpf ogt, %b0, %a0 : f32
    %c0, %c1 = scf.if %more -> (f32, i32) {
      scf.yield %b0, %b1 : f32, i32
    } else {
      scf.yield %a0, %a1 : f32, i32
    }"""
    numbers = np.random.default_rng(3).permutation(192)
    check(lanes_text(96, ("f32", "i32"), (4, 4), body), 96, numbers.astype(np.float32), np.arange(192, dtype=np.int32))


def test_conditions_take_a_byte() -> None:
    """What is a bit in a register is a byte in memory."""
    x = (np.arange(128) % 50 == 3).astype(np.int8)
    text = lanes_text(64, ("i8",), (1,), "%c0 = arith.ori %a0, %b0 : i1").replace(
        "%a0: i8, %b0: i8) -> (i8)", "%a0: i1, %b0: i1) -> (i1)"
    )
    text = text.replace("%c0 : i8", "%c0 : i1").replace("combiner=@combine : i8", "combiner=@combine : i1")
    text = text.replace("shuffle_reduce(%v0)", "shuffle_reduce(%t0)").replace(
        "%s0 = xla", "%t0 = arith.trunci %v0 : i8 to i1\n%u0 = xla"
    )
    text = text.replace("%r0 = tensor", "%s0 = arith.extui %u0 : i1 to i8\n%r0 = tensor")
    (want,) = check(text, 64, x)
    assert want.any()
    assert not want.all()


@pytest.mark.parametrize(
    ("type_", "dtype"), [("f32", "f4"), ("bf16", BF16), ("f64", "f8"), ("i64", "i8"), ("complex<f32>", "c8")]
)
def test_sums_of_rows(type_: str, dtype: Any) -> None:
    """Warps combine what their lanes had, then the first warp what the warps had."""
    x = (np.arange(6 * 256).reshape(6, 256) % 2).astype(dtype)
    module = parse_kernel_module(kernels.rows(type_, x.itemsize))
    run_host_pipeline(module)
    want = x.sum(axis=1, dtype=x.dtype)
    (actual,) = compile_host(module, kernels.ROWS_LAUNCH).run([x], [(want.shape, want.dtype)])
    np.testing.assert_array_equal(actual, want)


def test_only_lanes_that_count_combine() -> None:
    """The first lane of a warp needs half of the lanes, a lane of each eight the first four of them."""
    module = parse_kernel_module(kernels.rows("f32", 4))
    run_host_pipeline(module)
    text = host_text(module, kernels.ROWS_LAUNCH)
    assert text.count(".reduce.lanes.more, 16") == 2
    assert text.count(".reduce.warps.more, 4") == 1
    assert ".exists" not in text
    assert text.count("call float @sum(") == 2


@pytest.mark.parametrize("distance", [3, 12, 20])
def test_distances_between_powers_of_two(distance: int) -> None:
    """Each distance is half of the one before, rounded down: the first lane needs those at 12, 6, 3 and 1."""
    text = kernels.rows("f32", 4).replace("to 16", f"to {distance}")
    x = np.random.default_rng(6).integers(0, 9, (6, 256)).astype(np.float32)
    outputs = [((6,), x.dtype)]
    want = run_kernel(parse_kernel_module(text), kernels.ROWS_LAUNCH, [x], outputs)
    module = parse_kernel_module(text)
    run_host_pipeline(module)
    np.testing.assert_array_equal(compile_host(module, kernels.ROWS_LAUNCH).run([x], outputs), want)


REDUCTION = """func.func @main(%x: tensor<3x4096xf32>) -> ({types}) {{
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %r:{count} = {op} : (tensor<3x4096xf32>{more}) -> ({types})
  return {results} : {types}
}}"""
SUM = "stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]"
SUM_AND_DIFFERENCE = """"stablehlo.reduce"(%x, %x, %c, %c) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %d: tensor<f32>, %e: tensor<f32>):
    %s = stablehlo.add %a, %d : tensor<f32>
    %t = stablehlo.maximum %b, %e : tensor<f32>
    stablehlo.return %s, %t : tensor<f32>, tensor<f32>
  })"""


@pytest.mark.parametrize(("op", "count"), [(SUM, 1), (SUM_AND_DIFFERENCE, 2)])
def test_sums_of_a_loop_stay_where_they_are(op: str, count: int) -> None:
    """What threads carried through a loop is combined in the memory that holds it, and is not copied before."""
    types, results = ", ".join(["tensor<3xf32>"] * count), ", ".join(f"%r#{n}" for n in range(count))
    more = ", tensor<f32>" if count == 1 else ", tensor<3x4096xf32>, tensor<f32>, tensor<f32>"
    text = REDUCTION.format(types=types, count=count, op=op, more=more, results=results)
    kernel = emit(fusion_of(text))
    assert "phase2:\n  br label %phase3\n" in host_text(kernel.module(for_host=True), kernel.launch)
    x = np.random.default_rng(4).standard_normal((3, 4096)).astype(np.float32)
    for want, got in zip(kernel.run(x), kernel.run(x, on="host"), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_value_that_is_combined_twice() -> None:
    """A value that two results begin with has two arrays, so that one does not overwrite the other."""
    body = "%c0 = arith.addi %a0, %b0 : i32\n    %c1 = arith.maxsi %a1, %b1 : i32"
    text = lanes_text(64, ("i32", "i32"), (4, 4), body).replace("shuffle_reduce(%v0, %v1)", "shuffle_reduce(%v0, %v0)")
    x = np.random.default_rng(5).integers(-100, 100, 128).astype(np.int32)
    check(text, 64, x, x[::-1].copy())


def test_the_arrays_of_results() -> None:
    """Each step goes from one array to another, so that the number of steps decides which has the results."""
    arrays = (("float",), ("%a",), ("%b",))
    odd, even = (LaneReduction("sum", *arrays, distance, 32, 4, 16, 128) for distance in (16, 8))
    assert (odd.results, even.results) == (("%b",), ("%a",))
    assert odd.always_exists
    assert not LaneReduction("sum", *arrays, 16, 32, 4, 17, 128).always_exists
    assert not LaneReduction("sum", *arrays, 16, 32, 4, 16, 112).always_exists


def test_lanes_of_other_warps_are_refused() -> None:
    """A reduction does not reach into another warp."""
    module = parse_kernel_module(lanes_text(64, ("f32",), (4,), "%c0 = arith.addf %a0, %b0 : f32", 32))
    run_host_pipeline(module)
    launch = Launch((2, 1, 1), (64, 1, 1))
    with pytest.raises(UnsupportedError, match="within a warp of 32"):
        compile_host(module.clone(), launch)
    assert "icmp ult i32 %phase1.reduce.lane, 64" in host_text(module, launch, warp=64)
