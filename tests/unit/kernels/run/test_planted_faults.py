"""The interpreter finds faults that are planted into kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.errors import VerificationError
from shardy_py.kernels.dialect.text import parse_kernel_module
from shardy_py.kernels.run.kernel import run_kernel
from tests.unit.kernels.module_texts import run_loop_pipeline
from tests.unit.kernels.planted_faults import FAULTS, Fault


def result(fault: Fault, module: Any) -> Any:
    """What a module gives for the inputs of a fault."""
    outputs = [(fault.want.shape, fault.want.dtype)]
    (found,) = run_kernel(module, fault.launch, fault.inputs, outputs, stage="planted", slices=fault.slices)
    return found


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
