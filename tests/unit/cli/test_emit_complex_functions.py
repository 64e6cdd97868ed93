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


INVERSE = {name: f"arc{name[1:]}" for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh")}


@pytest.mark.parametrize("name", [*INVERSE, "cosh", "sinh"])
def test_functions_without_an_op(name: str) -> None:
    """They are computed of real functions, near branch points and on both sides of the cuts, too."""
    np = pytest.importorskip("numpy", reason="kernels need the extra 'codegen'")
    pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")
    from shardy_py.kernels import emit, read_fusion

    points = [0.5 + 2j, -3 + 0.25j, 0.25 - 1e-4j, 0.9999 + 1e-4j, -2 - 1j, 2 + 1e-3j, -2 + 1e-3j, 1e-6 + 1e-6j]
    z = np.array(points, np.complex64)
    text = (
        f"func.func @main(%a: {TYPE}) -> {TYPE} {{\n  %0 = chlo.{name} %a : {TYPE} -> {TYPE}\n  return %0 : {TYPE}\n}}"
    )
    (actual,) = emit(read_fusion(text)).run(z, stage="initial")
    np.testing.assert_allclose(actual, getattr(np, INVERSE.get(name, name))(z.astype(np.complex128)), rtol=1e-6)
