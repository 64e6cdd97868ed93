"""The judge of PTX finds faults that are planted into kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="PTX needs the extra 'codegen'")

from shardy_py.kernels.device import H100
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.lower.literals import nvptx
from shardy_py.kernels.lower.llvm import llvm_text
from shardy_py.kernels.lower.machine import ptx_text
from tests.conformance.test_kernel_ptx import JUDGE, judge
from tests.unit.kernels.module_texts import run_loop_pipeline
from tests.unit.kernels.planted_faults import FAULTS, Fault

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(JUDGE.name != "judge", reason="the emulator of PTX is not beside the reference's kernels"),
]


def result(fault: Fault, text: str) -> Any:
    """What a kernel gives in the emulator for the inputs of a fault."""
    module = parse_kernel_module(text)
    run_loop_pipeline(module)
    ptx = ptx_text(llvm_text(module, fault.launch, nvptx(has_libdevice=False)), fault.name, H100, None)
    memory = {slice_: np.array(array) for slice_, array in zip(fault.slices, fault.inputs, strict=False)}
    memory.setdefault(fault.slices[-1], np.zeros_like(fault.want))
    buffers = [memory[slice_] for slice_ in fault.slices]
    judge("ptxrun").run(ptx, fault.name, fault.launch.blocks, fault.launch.threads, buffers)
    return buffers[-1]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(name: str) -> None:
    """The PTX of a fault ends with an error of the emulator, or gives another result than that of the right kernel."""
    fault = FAULTS[name]
    np.testing.assert_array_equal(result(fault, fault.text), fault.want)
    try:
        actual = result(fault, fault.planted)
    except judge("ptxrun").PTXError:
        return
    assert not np.array_equal(actual, fault.want)
