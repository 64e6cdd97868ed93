"""Write the pages of stages of a transpose, a row and a column reduction; needs `stablehlo` and `codegen`.

python examples/kernels/stages_pages.py
"""

from pathlib import Path

from shardy_py.kernels import emit, read_fusion

TRANSPOSE = """
func.func @transpose(%x: tensor<20x160x170xf32>) -> tensor<170x160x20xf32> {
  %0 = stablehlo.transpose %x, dims = [2, 1, 0] : (tensor<20x160x170xf32>) -> tensor<170x160x20xf32>
  return %0 : tensor<170x160x20xf32>
}"""
SUMS = """
func.func @{name}(%x: tensor<{shape}xf32>) -> tensor<{kept}xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [{reduced}]
      : (tensor<{shape}xf32>, tensor<f32>) -> tensor<{kept}xf32>
  return %0 : tensor<{kept}xf32>
}}"""
ROWS = SUMS.format(name="rows", shape="1024x4096", kept="1024", reduced=1)
COLUMNS = SUMS.format(name="columns", shape="2048x64", kept="64", reduced=0)

for text in (TRANSPOSE, ROWS, COLUMNS):
    kernel = emit(read_fusion(text), device="h100")
    file = Path(f"{kernel.name}.html")
    file.write_text(kernel.page().html, encoding="utf-8")
    print(f"{file}: a {kernel.choice.kind.value} kernel, {len(kernel.stages)} stages")
