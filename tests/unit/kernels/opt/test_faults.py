"""What ``emit-opt`` finds in modules that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np
from xdsl.dialects import arith, builtin

from shardy_py.kernels.device import H100
from shardy_py.kernels.opt.differences import Culprit, differences, first_difference
from shardy_py.kernels.opt.modules import KernelModule, launch_of_module, read_module
from shardy_py.kernels.opt.reduce import module_size, reduce_module
from shardy_py.kernels.opt.run_module import ModuleResult, module_arguments, random_inputs
from shardy_py.kernels.opt.sanitizer import sanitize, wrong_start_values
from shardy_py.kernels.opt.stages import parse_kernel_pipeline, run_passes
from shardy_py.kernels.passes.base import KernelContext, functions
from shardy_py.values import frozen
from tests.unit.kernels.opt.modules import TILES, TWO_FAULTS
from tests.unit.kernels.planted_faults import FAULTS

SQUARES = """func.func @main(%x: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %e = tensor.extract %x[%t] : tensor<32xf32>
  %m = arith.mulf %e, %e : f32
  %s = math.sqrt %m : f32
  %n = arith.negf %s : f32
  %r = tensor.insert %n into %o[%t] : tensor<32xf32>
  return %r : tensor<32xf32>
}"""


HALVES = """func.func @main(%x: tensor<64xi8>, %o: tensor<64xi4>) -> tensor<64xi4> {
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %v = tensor.extract %x[%t] : tensor<64xi8>
  %n = arith.trunci %v : i8 to i4
  %r = tensor.insert %n into %o[%t] : tensor<64xi4>
  return %r : tensor<64xi4>
}"""


@frozen
class WrongPass:
    """Turns negation into its operand, as a faulty pass would; or fails where there is one."""

    fails: bool = False
    name: str = "wrong"

    def run(self, module: builtin.ModuleOp, context: KernelContext) -> None:
        """Change the module in place."""
        for function in functions(module):
            for op in list(function.walk()):
                if isinstance(op, arith.NegfOp):
                    assert not self.fails
                    op.result.replace_all_uses_with(op.operand)


def culprit(kernel: KernelModule, *passes: Any) -> Culprit | None:
    """The first pass behind which a module is wrong."""
    arguments = module_arguments(kernel)
    return first_difference(kernel, passes, H100, launch_of_module(kernel), arguments, random_inputs(arguments, 0))


def found_in(text: str) -> list[tuple[str, str, str]]:
    """The code, op and place of each fault of a module."""
    kernel = read_module(text, "k.mlir")
    arguments = module_arguments(kernel)
    actual = sanitize(kernel, launch_of_module(kernel), arguments, random_inputs(arguments, 0))
    return [(item.code, item.op, item.location) for item in actual]


def test_several_faults_in_one_run() -> None:
    """Those that do not end a run are all found, with the lines of their ops."""
    assert found_in(TWO_FAULTS) == [
        ("out-of-bounds", "tensor.extract", "k.mlir:6"),
        ("race", "tensor.extract", "k.mlir:8"),
        ("uninitialized-read", "tensor.extract", "k.mlir:8"),
    ]


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.code])
def test_planted_faults(name: str) -> None:
    """Each is found under its code."""
    assert FAULTS[name].code in {code for code, *_ in found_in(FAULTS[name].planted)}
    assert found_in(FAULTS[name].text) == []


def test_faults_behind_passes_have_the_lines_of_the_file() -> None:
    """An op that passes made has the line of the op of which they made it."""
    kernel = read_module(
        SQUARES.replace("insert %n into %o[%t]", "insert %n into %o[%u]").replace(
            "  %n =", "  %u = arith.addi %t, %t : index\n  %n ="
        ),
        "k.mlir",
    )
    arguments = module_arguments(kernel)
    inputs, launch = random_inputs(arguments, 0), launch_of_module(kernel)
    stages = run_passes(kernel, parse_kernel_pipeline("kernel-pipeline"), H100)
    faults = sanitize(stages[-1].kernel, launch, arguments, inputs, stage="last")
    assert "out-of-bounds" in {item.code for item in faults}
    assert {(item.op, item.location) for item in faults} == {("llvm.store", "k.mlir:8")}


def test_faults_of_a_module_that_mlir_reads_name_its_file() -> None:
    """The lines of its generic form are not those of the file, so that a fault names the file alone, not a stage."""
    text = TWO_FAULTS.replace("  %tile =", '  %less = arith.cmpi "slt", %t, %one : index\n  %tile =')
    kernel = read_module(text, "k.mlir")
    arguments = module_arguments(kernel)
    faults = sanitize(kernel, launch_of_module(kernel), arguments, random_inputs(arguments, 0), stage="initial")
    assert [item.location for item in faults] == ["k.mlir"] * 3


def test_parts_of_bytes_are_no_undefined_reads() -> None:
    """A thread that writes four bits of an undefined byte keeps the other four, whatever they are."""
    kernel = read_module(HALVES, "k.mlir")
    arguments = module_arguments(kernel)
    inputs, launch = random_inputs(arguments, 0), launch_of_module(kernel)
    stages = run_passes(kernel, parse_kernel_pipeline("kernel-pipeline{until=lower-tensors}"), H100)
    assert [sanitize(item.kernel, launch, arguments, inputs) for item in (stages[0], stages[-1])] == [[], []]
    assert "llvm.cmpxchg" in stages[-1].kernel.print()


def test_a_read_of_what_nothing_writes() -> None:
    """A tile whose permutation is swapped is read where it is undefined."""
    assert {code for code, *_ in found_in(FAULTS["swapped-permutation"].planted)} == {"uninitialized-read"}


def test_start_values_that_are_not_neutral() -> None:
    """A reduction over lanes that begins with 1, and a border of a sum that is not 0, are found."""
    fault = FAULTS["wrong-neutral-value"]
    assert {code for code, *_ in found_in(fault.planted)} == {"wrong-neutral-value"}
    (border,) = wrong_start_values(read_module(TILES.replace("ZERO", "2.0")))
    assert (border.code, border.op) == ("wrong-neutral-value", "xla_gpu.reduce")
    assert wrong_start_values(read_module(TILES.replace("ZERO", "0.0"))) == []


def test_the_first_wrong_pass() -> None:
    """A bisection names the pass that changes a result, the one that fails, or none."""
    kernel = read_module(SQUARES)
    cse, inline = parse_kernel_pipeline("cse,inline")
    wrong = culprit(kernel, cse, WrongPass(), inline)
    assert wrong is not None
    assert (wrong.stage.label, wrong.code, wrong.number) == ("01.wrong", "different-result", 1)
    failing = culprit(kernel, cse, WrongPass(fails=True))
    assert failing is not None
    assert (failing.code, failing.number) == ("pass-failed", 1)
    assert culprit(kernel, cse, inline) is None


def test_a_bisection_names_the_line_of_a_fault() -> None:
    """A module that is wrong before the first pass ends with the fault at its line."""
    wrong = culprit(read_module(TWO_FAULTS, "k.mlir"), *parse_kernel_pipeline("cse"))
    assert wrong is not None
    assert wrong.error is not None
    assert (wrong.number, wrong.error.code, wrong.error.location) == (-1, "out-of-bounds", "k.mlir:6")


def test_a_module_is_reduced() -> None:
    """What a fault does not need goes away; the fault stays."""
    kernel = read_module(SQUARES)

    def is_wrong(candidate: KernelModule) -> bool:
        culprit_pass = culprit(candidate, WrongPass())
        return culprit_pass is not None and culprit_pass.code == "different-result"

    smallest = reduce_module(kernel, is_wrong)
    text = smallest.print()
    assert is_wrong(smallest)
    assert module_size(smallest.module) < module_size(kernel.module)
    assert "arith.negf" in text
    assert "math.sqrt" not in text
    assert "arith.mulf" not in text


def test_differences_of_results() -> None:
    """Floats may differ by units in the last place, NaNs are equal, integers have to be the same."""

    def compared(first: list[float], second: list[float], dtype: Any) -> list[str]:
        results = [[ModuleResult("r", np.array(row).astype(dtype))] for row in (first, second)]
        return [str(item) for item in differences(*results)]

    assert compared([1.0, np.nan], [1.0 + 2**-22, np.nan], np.float32) == []
    (text,) = compared([1.0, 2.0], [1.0, 2.5], np.float32)
    assert (
        text == "r: 1 of 2 elements differ, the first at [1]: 2.0 and 2.5; by 1.68e+06 units in the last place at most"
    )
    assert compared([1, 2], [1, 3], np.int32) == ["r: 1 of 2 elements differ, the first at [1]: 2 and 3"]
    assert compared([np.inf], [1.0], np.float32) != []
