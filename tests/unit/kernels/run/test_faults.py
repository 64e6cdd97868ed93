"""Faults of kernels that the interpreter finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardy_py.errors import UnsupportedError, VerificationError
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.run.kernel import run_kernel
from tests.unit.kernels.module_texts import run_loop_pipeline
from tests.unit.kernels.planted_faults import FAULTS, Fault
from tests.unit.kernels.run.modules import entry, run_one

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")

X = "%x: tensor<32xf32>,"
OUT = ((32,), np.float32)
SHARED = "tensor<32xf32>"


def values() -> np.ndarray:
    """32 different numbers."""
    return np.arange(32, dtype=np.float32)


def code_of(body: str, **more: object) -> str:
    """The code of the error that a kernel ends with."""
    with pytest.raises(VerificationError) as caught:
        run_one(entry(X, body, result=SHARED, returned=more.pop("returned", "%o")), [values()], OUT, **more)
    return caught.value.diagnostics[0].code


def test_access_outside_of_a_tensor() -> None:
    """An active thread that reads outside of a tensor is an error that names thread, op and stage."""
    body = """
  %c = arith.constant 1 : index
  %i = arith.addi %t, %c : index
  %v = tensor.extract %x[%i] : tensor<32xf32>
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    with pytest.raises(VerificationError, match=r"thread \(31, 0, 0\) of block \(0, 0, 0\): index 32") as caught:
        run_one(entry(X, body, result=SHARED), [values()], OUT, stage="inline")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.op, diagnostic.location) == ("out-of-bounds", "tensor.extract", "inline")


def test_access_of_a_thread_that_is_not_active() -> None:
    """A thread that a condition keeps away accesses nothing."""
    body = """
  %c = arith.constant 31 : index
  %d = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %i = arith.addi %t, %d : index
  %p = arith.cmpi slt, %t, %c : index
  %v = scf.if %p -> (f32) {
    %e = tensor.extract %x[%i] : tensor<32xf32>
    scf.yield %e : f32
  } else {
    scf.yield %z : f32
  }
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    actual = run_one(entry(X, body, result=SHARED), [values()], OUT)
    np.testing.assert_array_equal(actual, np.append(values()[1:], 0))


RACE = """
  %h = arith.constant 2 : index
  %i = arith.divui %t, %h : index
  %k = arith.constant 16 : index
  %j = arith.addi %i, %k : index
  %v = tensor.extract %x[{read}] : tensor<32xf32>
  %r = tensor.insert %v into %o[%i] : tensor<32xf32>
  %s = tensor.insert %v into %o[%j] : tensor<32xf32>"""


def test_two_threads_write_one_element() -> None:
    """Two threads that write different values to one element race; the same value may be written twice."""
    assert code_of(RACE.format(read="%t")) == "race"
    module = entry(X, RACE.format(read="%i"), result=SHARED)
    np.testing.assert_array_equal(run_one(module, [values()], OUT), np.tile(values()[:16], 2))


def test_race_between_chunks() -> None:
    """A race between blocks is found, whatever runs at once."""
    body = """
  %f = arith.index_castui %block : index to i32
  %g = arith.sitofp %f : i32 to f32
  %r = tensor.insert %g into %o[%t] : tensor<32xf32>"""
    for chunk in (32, 64):
        assert code_of(body, launch=Launch((2, 1, 1), (32, 1, 1)), chunk=chunk) == "race"


REVERSED = """
  %s = xla_gpu.allocate_shared : tensor<32xf32>
  %v = tensor.extract %x[%t] : tensor<32xf32>
  %w = tensor.insert %v into %s[%t] : tensor<32xf32>
  {barrier}
  %n = arith.constant 31 : index
  %i = arith.subi %n, %t : index
  %e = tensor.extract %y[%i] : tensor<32xf32>
  %r = tensor.insert %e into %o[%t] : tensor<32xf32>"""


def test_missing_barrier() -> None:
    """What another thread writes to shared memory may be read after a barrier only."""
    module = entry(X, REVERSED.format(barrier="%y = xla_gpu.sync_threads %w : tensor<32xf32>"), result=SHARED)
    np.testing.assert_array_equal(run_one(module, [values()], OUT), values()[::-1])
    assert code_of(REVERSED.format(barrier="").replace("%y", "%w")) == "race"


def test_write_to_what_others_read() -> None:
    """What another thread reads from shared memory may be written after a barrier only."""
    overwrite = """
  %y = xla_gpu.sync_threads %w : tensor<32xf32>
  %n0 = arith.constant 31 : index
  %i0 = arith.subi %n0, %t : index
  %e0 = tensor.extract %y[%i0] : tensor<32xf32>
  {}
  %u = tensor.insert %e0 into %y[%t] : tensor<32xf32>
  %a = xla_gpu.sync_threads %u : tensor<32xf32>"""
    body = REVERSED.replace("%y[%i]", "%a[%i]")
    assert code_of(body.format(barrier=overwrite.format(""))) == "race"
    module = entry(X, body.format(barrier=overwrite.format("gpu.barrier")), result=SHARED)
    np.testing.assert_array_equal(run_one(module, [values()], OUT), values())


def test_barrier_that_not_all_threads_reach() -> None:
    """A barrier inside a branch that some threads of a block do not take is an error; by blocks it is none."""
    body = """
  %one = arith.constant 1 : index
  %p = arith.cmpi eq, {id}, %one : index
  scf.if %p {{
    gpu.barrier
  }}
  %v = tensor.extract %x[%t] : tensor<32xf32>
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    assert code_of(body.format(id="%t")) == "non-uniform-barrier"
    module = entry(X, body.format(id="%block"), result=SHARED)
    launch = Launch((2, 1, 1), (32, 1, 1))
    np.testing.assert_array_equal(run_one(module, [values()], OUT, launch=launch), values())


def test_element_that_no_thread_writes() -> None:
    """A result with an element that no thread writes is an error."""
    body = """
  %h = arith.constant 2 : index
  %i = arith.divui %t, %h : index
  %v = tensor.extract %x[%i] : tensor<32xf32>
  %r = tensor.insert %v into %o[%i] : tensor<32xf32>"""
    assert code_of(body) == "unwritten-element"


def test_parameters_are_read_only() -> None:
    """A thread that writes to a parameter that is no result is an error."""
    body = """
  %v = tensor.extract %x[%t] : tensor<32xf32>
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>
  %s = tensor.insert %v into %x[%t] : tensor<32xf32>"""
    assert code_of(body) == "read-only"


def test_division_by_zero() -> None:
    """An active thread that divides an integer by zero is an error."""
    body = """
  %q = arith.divsi %t, %t : index
  %v = tensor.extract %x[%q] : tensor<32xf32>
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    assert code_of(body) == "division-by-zero"


def test_unknown_ops_and_functions() -> None:
    """An op that the interpreter does not know, and a function that is missing, are errors."""
    body = """
  %c = arith.constant 1 : i32
  %d, %e = arith.addui_extended %c, %c : i32, i1
  %v = tensor.extract %x[%t] : tensor<32xf32>
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    with pytest.raises(UnsupportedError, match="run-unknown-op"):
        run_one(entry(X, body, result=SHARED), [values()], OUT)
    body = """
  %v = xla_gpu.pure_call @nothing(%t) : (index) -> f32
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    assert code_of(body) == "run-unknown-function"


def test_arrays_that_do_not_fit() -> None:
    """Arrays that are not those of the entry function are an error."""
    body = """
  %v = tensor.extract %x[%t] : tensor<32xf32>
  %r = tensor.insert %v into %o[%t] : tensor<32xf32>"""
    module = entry(X, body, result=SHARED)
    for inputs in ([], [values()[:31]], [values().astype(np.float64)]):
        with pytest.raises(VerificationError, match="run-arguments"):
            run_one(module, inputs, OUT)


pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")


def result(fault: Fault, module: Any) -> Any:
    """What a module gives for the inputs of a fault."""
    outputs = [(fault.want.shape, fault.want.dtype)]
    (actual,) = run_kernel(module, fault.launch, fault.inputs, outputs, stage="planted", slices=fault.slices)
    return actual


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str) -> None:
    """A fault ends with an error that names thread, op and stage, or gives another result than the right kernel."""
    fault = FAULTS[name]
    np.testing.assert_array_equal(result(fault, parse_kernel_module(fault.text)), fault.want)
    module = parse_kernel_module(fault.planted)
    if not fault.code:
        assert not np.array_equal(result(fault, module), fault.want)
        return
    with pytest.raises(VerificationError, match=r"thread \(\d+, 0, 0\) of block .* at stage planted") as caught:
        result(fault, module)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == fault.code
    assert diagnostic.op


@pytest.mark.parametrize("name", ["removed-barrier", "atomic-made-plain"])
def test_a_race_is_found_after_the_last_pass(name: str) -> None:
    """No pass hides a race."""
    fault = FAULTS[name]
    module = parse_kernel_module(fault.planted)
    run_loop_pipeline(module)
    with pytest.raises(VerificationError) as caught:
        result(fault, module)
    assert caught.value.diagnostics[0].code == "race"
