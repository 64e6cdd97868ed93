"""The work of a kernel grows as its operands do: counted in lines of Python that run, not in time."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from shardy_py.kernels import emit, read_fusion
from tests.budget.growing_programs import VECTOR, module, names
from tests.budget.test_linear_work import MOST, exponent_of


def emit_llvm(operands: int) -> None:
    """Do what ``shardy emit --target llvm`` does for a concatenate."""
    type_ = f"tensor<{8 * operands}xf32>"
    operand_names, types = ", ".join(names(operands)), ", ".join([VECTOR] * operands)
    body = f"%0 = stablehlo.concatenate {operand_names}, dim = 0 : ({types}) -> {type_}"
    text = module([f"{name}: {VECTOR}" for name in names(operands)], body, ["%0"], [type_])
    assert emit(read_fusion(text)).llvm


@pytest.mark.slow
def test_kernels_of_many_operands_take_linear_work() -> None:
    """Twice as many operands take twice the work; four times 150 are more than a device takes parameters."""
    assert exponent_of(emit_llvm, 150) <= MOST
