"""Fusions for the tests of emitters, from StableHLO."""

from __future__ import annotations

from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.kernel import Kernel
from shardy_py.plugins.installed import installed_registry


def fusion_of(text: str) -> Fusion:
    """The fusion of a module's main function."""
    program = import_module(parse_module(text))
    return Fusion.of_function(program.functions["main"], installed_registry())


def changing_stages(kernel: Kernel) -> list[str]:
    """The stages whose module is another one than before the pass: equal modules compute the same."""
    texts = list(kernel.stages.values())
    return [stage for number, stage in enumerate(kernel.stages) if number == 0 or texts[number] != texts[number - 1]]


LOG_TRANSPOSE_ADD = """
func.func @main(%x: tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32> {{
  %0 = stablehlo.log %x : tensor<{n}x{n}xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<{n}x{n}xf32>) -> tensor<{n}x{n}xf32>
  %2 = stablehlo.add %0, %1 : tensor<{n}x{n}xf32>
  return %2 : tensor<{n}x{n}xf32>
}}"""

ADD_SLICE_PAD = """
func.func @main(%x: tensor<100xf32>, %y: tensor<100xf32>) -> tensor<100xf32> {
  %0 = stablehlo.add %x, %y : tensor<100xf32>
  %1 = stablehlo.slice %0 [25:75] : (tensor<100xf32>) -> tensor<50xf32>
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.pad %1, %cst, low = [25], high = [25], interior = [0]
      : (tensor<50xf32>, tensor<f32>) -> tensor<100xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<100xf32>
  return %3 : tensor<100xf32>
}"""

SUM = """
func.func @main(%x: tensor<{shape}xf32>) -> tensor<{result}xf32> {{
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %cst) applies stablehlo.add across dimensions = [{dim}]
      : (tensor<{shape}xf32>, tensor<f32>) -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}"""

TRANSPOSE = """
func.func @main(%x: tensor<{shape}x{dtype}>) -> tensor<{result}x{dtype}> {{
  %0 = stablehlo.transpose %x, dims = [{dims}] : (tensor<{shape}x{dtype}>) -> tensor<{result}x{dtype}>
  return %0 : tensor<{result}x{dtype}>
}}"""

NEGATE = """
func.func @main(%x: tensor<{shape}xf32>) -> tensor<{shape}xf32> {{
  %0 = stablehlo.negate %x : tensor<{shape}xf32>
  return %0 : tensor<{shape}xf32>
}}"""

UPDATE = """
func.func @main(%x: tensor<20x30xf32>, %u: tensor<5x6xf32>, %i: tensor<i32>) -> tensor<20x30xf32> {{
  {read}
  %1 = stablehlo.dynamic_update_slice %x, {update}, %i, %i
      : (tensor<20x30xf32>, tensor<5x6xf32>, tensor<i32>, tensor<i32>) -> tensor<20x30xf32>
  return %1 : tensor<20x30xf32>
}}"""
