"""Starts of slices that follow from constants."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

from shardy_dialects.stablehlo.local.known_integers import known_integers
from shardy_py.frontends.mlir import MLIR

PROGRAM = """
func.func @main(%x: tensor<i32>) -> tensor<i32> {{
  %seven = stablehlo.constant dense<7> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %float = stablehlo.constant dense<3.0> : tensor<f32>
  %half = stablehlo.constant dense<5.0e-01> : tensor<f32>
  {ops}
  return %start : tensor<i32>
}}
"""


@pytest.mark.parametrize(
    ("ops", "numbers"),
    [
        ("%start = stablehlo.add %seven, %two : tensor<i32>", (9,)),
        ("%start = stablehlo.add %seven, %x : tensor<i32>", None),
        (
            "%f = stablehlo.divide %float, %half : tensor<f32>\n"
            "%start = stablehlo.convert %f : (tensor<f32>) -> tensor<i32>",
            None,
        ),
        ("%start = stablehlo.convert %float : (tensor<f32>) -> tensor<i32>", None),
        (
            "%p = stablehlo.compare LT, %seven, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
            "%start = stablehlo.select %p, %seven, %two : tensor<i1>, tensor<i32>",
            (2,),
        ),
    ],
    ids=["constants", "argument", "division of floats", "float", "choice"],
)
def test_integers_of_constants(ops: str, numbers: tuple[int, ...] | None) -> None:
    """Ops on integers are folded; what floats say is not known, as their ops round."""
    program = MLIR.import_program(MLIR.parse_text(PROGRAM.format(ops=ops)))
    (main,) = program.body.ops
    *_, end = main.regions[0].blocks[0].ops
    assert known_integers(end.operands[0]) == numbers
