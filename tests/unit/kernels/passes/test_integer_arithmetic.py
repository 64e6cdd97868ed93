"""Quotients, shifts and powers of integers have the results of XLA before and behind passes, and on the host."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
pytest.importorskip("llvmlite", reason="machine code needs the extra 'codegen'")

import numpy as np

from shardy_py.errors import VerificationError
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.lower.host import compile_host
from shardy_py.kernels.opt.modules import KernelModule, launch_of_module, read_module
from shardy_py.kernels.opt.run_module import module_arguments, run_module
from shardy_py.kernels.passes.base import KernelContext
from shardy_py.kernels.passes.integer_arithmetic import ExpandIntegerPower, SafeIntegerArithmetic
from shardy_py.kernels.run.kernel import run_kernel
from tests.unit.kernels.integer_modules import LAUNCH, OPS, exact_elements, integer_module, integer_pairs, wrapped
from tests.unit.kernels.module_texts import after, run_loop_pipeline


@pytest.mark.parametrize("bits", [8, 32, 64])
@pytest.mark.parametrize("op", OPS)
def test_results_are_exact(op: str, bits: int) -> None:
    """Interpreter and host give what Python's integers give, at the borders and elsewhere."""
    left, right = integer_pairs(bits, seed=bits)
    expected = exact_elements(op, left, right, bits)
    outputs = [(left.shape, left.dtype)]
    module = parse_kernel_module(integer_module(op, bits))
    (actual,) = run_kernel(module, LAUNCH, [left, right], outputs)
    np.testing.assert_array_equal(actual, expected)
    run_loop_pipeline(module)
    (actual,) = run_kernel(module, LAUNCH, [left, right], outputs, slices=range(3))
    np.testing.assert_array_equal(actual, expected)
    (actual,) = compile_host(module, LAUNCH).run([left, right], outputs)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("bits", [1, 4])
@pytest.mark.parametrize("op", OPS)
def test_few_bits_and_vectors(op: str, bits: int) -> None:
    """All pairs of integers of few bits, in vectors, are right before and behind the passes."""
    mark = "" if op == "math.ipowi" else "{xla.guard_ub} "
    count = 1 << (2 * bits)
    left, right = (np.array([wrapped(pair >> shift, bits) for pair in range(count)]) for shift in (bits, 0))
    expected = exact_elements(op, left, right, bits)
    texts = [str((array.astype(bool) if bits == 1 else array).tolist()).lower() for array in (left, right)]
    type_ = f"vector<{count}xi{bits}>"
    text = f"""func.func @main() -> {type_} {{
      %v = arith.constant dense<{texts[0]}> : {type_}
      %w = arith.constant dense<{texts[1]}> : {type_}
      %r = {op} %v, %w {mark}: {type_}
      func.return %r : {type_}
    }}"""
    kernel = read_module(text)
    np.testing.assert_array_equal(_returned(kernel)[0].astype(int), expected != 0 if bits == 1 else expected)
    for step in (SafeIntegerArithmetic(), ExpandIntegerPower()):
        step.run(kernel.module, KernelContext())
    kernel.module.verify()
    lowered = kernel.print()
    assert "guard_ub" not in lowered
    assert "ipowi" not in lowered
    np.testing.assert_array_equal(_returned(kernel)[0].astype(int), expected != 0 if bits == 1 else expected)


def _returned(kernel: KernelModule) -> Any:
    (result,) = run_module(kernel, launch_of_module(kernel, threads=(1, 1, 1)), module_arguments(kernel), [])
    return result.array


def test_what_is_not_marked_stays() -> None:
    """A division without the mark is one behind the pass, and one by zero is a fault."""
    text = integer_module("arith.divsi", 32).replace(" {xla.guard_ub}", "")
    assert after(text, SafeIntegerArithmetic()) == after(text)
    x = np.ones(LAUNCH.threads[0], np.int32)
    with pytest.raises(VerificationError, match="divides by zero"):
        run_kernel(parse_kernel_module(text), LAUNCH, [x, 0 * x], [(x.shape, x.dtype)])
