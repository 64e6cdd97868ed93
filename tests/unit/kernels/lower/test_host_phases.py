"""Kernels whose threads share memory as machine code of the host: phases between barriers."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import ml_dtypes
import numpy as np
from xdsl.dialects import arith, builtin

from shardy_py.errors import UnsupportedError, VerificationError
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.entry.arguments import ENTRY
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.host import compile_host
from shardy_py.kernels.lower.phases import split_phases
from shardy_py.kernels.passes.base import functions
from shardy_py.kernels.run.kernel import run_kernel
from tests.unit.kernels import shared_kernels as kernels
from tests.unit.kernels.module_texts import run_loop_pipeline

BF16 = np.dtype(ml_dtypes.bfloat16)


def on_host(text: str, launch: Launch, like: Any, *inputs: Any) -> Any:
    """The result of a kernel on the host.

    Args:
        text: The kernel.
        launch: Its grid.
        like: An array of the result's shape and type.
        inputs: What it reads.
    """
    module = parse_kernel_module(text)
    run_loop_pipeline(module)
    (actual,) = compile_host(module, launch).run([np.asarray(item) for item in inputs], [(like.shape, like.dtype)])
    return actual


def test_a_transpose() -> None:
    """All threads of a block write their part of a tile before the first one reads from it."""
    x = np.arange(3500, dtype=np.float32).reshape(50, 70)
    np.testing.assert_array_equal(on_host(kernels.TRANSPOSE, kernels.TRANSPOSE_LAUNCH, x.T, x), -x.T)


@pytest.mark.parametrize(
    ("type_", "dtype"), [("f32", "f4"), ("bf16", BF16), ("f64", "f8"), ("i64", "i8"), ("complex<f32>", "c8")]
)
def test_sums_of_rows(type_: str, dtype: Any) -> None:
    """Each step of an exchange between lanes takes what other lanes had before it."""
    x = (np.arange(6 * 256).reshape(6, 256) % 2).astype(dtype)
    text = kernels.rows(type_, x.itemsize)
    want = x.sum(axis=1, dtype=x.dtype)
    np.testing.assert_array_equal(on_host(text, kernels.ROWS_LAUNCH, want, x), want)


def test_quotients_are_computed_again() -> None:
    """Conditions on quotients of a thread's number are computed in each phase, and are not kept in memory."""
    module = parse_kernel_module(kernels.rows("f32", 4))
    run_loop_pipeline(module)
    (entry,) = (function for function in functions(module) if ENTRY in function.attributes)
    phases = split_phases(entry)
    divided = [op for op in entry.walk() if isinstance(op, arith.DivUIOp | arith.RemUIOp)]
    assert divided
    assert len(phases.phases) > 5
    assert not {op.result for op in divided} & set(phases.slots)
    assert all(not isinstance(value.type, builtin.IntegerType) for value in phases.slots)


@pytest.mark.parametrize(
    ("type_", "dtype", "op", "combine"),
    [
        ("f32", "f4", "arith.addf", np.add),
        ("f32", "f4", "arith.maximumf", np.maximum),
        ("f32", "f4", "arith.subf", np.subtract),
        ("bf16", BF16, "arith.addf", np.add),
        ("i8", "i1", "arith.ori", np.bitwise_or),
        ("i32", "i4", "arith.minsi", np.minimum),
        ("complex<f32>", "c8", "complex.add", np.add),
    ],
)
def test_atomic_updates(type_: str, dtype: Any, op: str, combine: Any) -> None:
    """Updates are made one after the other in the order of the threads."""
    random = np.random.default_rng(1)
    x, u = (random.integers(-3, 4, shape).astype(dtype) for shape in ((8, 2), (200, 2)))
    at = random.integers(0, 10, 200).astype(np.int32)
    want = x.copy()
    for row, values in zip(at, u, strict=True):
        if row < 8:
            want[row] = combine(want[row], values)
    actual = on_host(kernels.updates(type_, x.itemsize, op), kernels.UPDATES_LAUNCH, x, x, at, u)
    np.testing.assert_array_equal(actual, want)


# Threads pass values to their neighbours, round by round; how many rounds depends on the block.
ROUNDS = f"""builtin.module {{
  func.func @rounds(%x: tensor<3x40xf32> {kernels.argument(0, 480, is_read=True)},
      %o: tensor<3x40xf32> {kernels.argument(1, 480)}) -> tensor<3x40xf32> attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 39 : index]}}
    %bl = gpu.block_id x {{xla.range = [0 : index, 2 : index]}}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c39 = arith.constant 39 : index
    %rounds = arith.muli %bl, %c5 : index
    %tile = xla_gpu.allocate_shared : tensor<40xf32>
    %start = tensor.extract %x[%bl, %th] : tensor<3x40xf32>
    %next = arith.addi %th, %c1 : index
    %place = arith.minsi %next, %c39 : index
    %end, %sum = scf.for %i = %c0 to %rounds step %c1 iter_args(%v = %start, %s = %start) -> (f32, f32) {{
      %kept = tensor.insert %v into %tile[%th] : tensor<40xf32>
      %all = xla_gpu.sync_threads %kept : tensor<40xf32>
      %w = tensor.extract %all[%place] : tensor<40xf32>
      %t = arith.addf %s, %w : f32
      gpu.barrier
      scf.yield %w, %t : f32, f32
    }}
    %both = arith.addf %end, %sum : f32
    %r = tensor.insert %both into %o[%bl, %th] : tensor<3x40xf32>
    func.return %r : tensor<3x40xf32>
  }}
}}"""


def test_barriers_in_a_loop() -> None:
    """What a loop around barriers carries goes from phase to phase; blocks may wait more or less often."""
    x = np.arange(120, dtype=np.float32).reshape(3, 40)
    launch = Launch((3, 1, 1), (40, 1, 1))
    (want,) = run_kernel(parse_kernel_module(ROUNDS), launch, [x], [(x.shape, x.dtype)])
    assert want[1, 0] == x[1, 5] + x[1, :6].sum()
    np.testing.assert_array_equal(on_host(ROUNDS, launch, x, x), want)


APART = f"""builtin.module {{
  func.func @apart(%x: tensor<40xf32> {kernels.argument(0, 160, is_read=True)},
      %o: tensor<40xf32> {kernels.argument(1, 160)}) -> tensor<40xf32> attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 39 : index]}}
    %v = tensor.extract %x[%th] : tensor<40xf32>
    %c = arith.constant 0.0 : f32
    %some = arith.cmpf ogt, %v, %c : f32
    scf.if %some {{
      gpu.barrier
    }}
    %r = tensor.insert %v into %o[%th] : tensor<40xf32>
    func.return %r : tensor<40xf32>
  }}
}}"""


def test_threads_that_part() -> None:
    """A barrier that only some threads of a block reach is an error, one that all or none reach is none."""
    launch = Launch((1, 1, 1), (40, 1, 1))
    for x in (np.ones(40, np.float32), np.zeros(40, np.float32)):
        np.testing.assert_array_equal(on_host(APART, launch, x, x), x)
    with pytest.raises(VerificationError, match="non-uniform-barrier"):
        on_host(APART, launch, x, np.arange(40, dtype=np.float32))


def test_exchange_in_parts_of_warps() -> None:
    """Lanes exchange in whole warps only, on the host as on devices."""
    text = kernels.rows("f32", 4)
    module = parse_kernel_module(text)
    run_loop_pipeline(module)
    for op in module.walk():
        if op.name == "arith.constant" and str(op.result.type) == "i32" and op.value.value.data == 32:
            op.properties["value"] = type(op.value)(16, op.result.type)
    with pytest.raises(UnsupportedError, match="whole warps"):
        compile_host(module, kernels.ROWS_LAUNCH)
