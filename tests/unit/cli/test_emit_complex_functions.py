"""Functions of complex numbers in kernels: computed, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

TYPE = "tensor<8xcomplex<f32>>"


def of_op(tmp_path: Path, op: str) -> str:
    """Return the path of a module with one op."""
    file = tmp_path / "op.mlir"
    file.write_text(f"func.func @main(%a: {TYPE}) -> {TYPE} {{\n  %0 = {op}\n  return %0 : {TYPE}\n}}\n")
    return str(file)


def test_cube_root(tmp_path: Path, shardy: Any) -> None:
    """It is the power with exponent 1/3."""
    done = shardy("emit", of_op(tmp_path, f"stablehlo.cbrt %a : {TYPE}"), "--stage", "initial")
    assert done.exit_code == 0
    assert "complex.pow" in done.output


def test_functions_of_real_numbers_only(tmp_path: Path, shardy: Any) -> None:
    """The error names the function and its line."""
    done = shardy("emit", of_op(tmp_path, f"chlo.acos %a : {TYPE} -> {TYPE}"))
    assert done.exit_code == 2
    assert "op.mlir:2:8: error: 'chlo.acos' op: kernels have no acos of complex numbers" in done.stderr
