"""Emit the kernel of GELU, stage by stage, and run it without a GPU; needs the extras `stablehlo` and `codegen`.

python examples/kernels/gelu.py
"""

import numpy as np

from shardy_py.kernels import emit, read_fusion

ROWS, COLUMNS = 64, 512
GELU = """
func.func @main(%x: tensor<64x512xf32>) -> tensor<64x512xf32> {
  %a = stablehlo.constant dense<0.044708> : tensor<64x512xf32>
  %b = stablehlo.constant dense<0.79785> : tensor<64x512xf32>
  %half = stablehlo.constant dense<0.5> : tensor<64x512xf32>
  %square = stablehlo.multiply %x, %x : tensor<64x512xf32>
  %cube = stablehlo.multiply %square, %x : tensor<64x512xf32>
  %scaled = stablehlo.multiply %cube, %a : tensor<64x512xf32>
  %sum = stablehlo.add %x, %scaled : tensor<64x512xf32>
  %inner = stablehlo.multiply %sum, %b : tensor<64x512xf32>
  %tanh = stablehlo.tanh %inner : tensor<64x512xf32>
  %part = stablehlo.multiply %tanh, %half : tensor<64x512xf32>
  %weight = stablehlo.add %part, %half : tensor<64x512xf32>
  %0 = stablehlo.multiply %x, %weight : tensor<64x512xf32>
  return %0 : tensor<64x512xf32>
}"""

kernel = emit(read_fusion(GELU), device="h100")
launch = kernel.launch
print(f"emitter {kernel.choice.kind.value}: {launch.blocks[0]} blocks of {launch.threads[0]} threads")
for name, text in kernel.stages.items():
    ops = sum(" = " in line for line in text.splitlines())
    print(f"  {name:36}{ops:6} ops {'#' * (ops // 8)}")

x = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype("float32")
expected = x * (0.5 * np.tanh(0.79785 * (x + 0.044708 * x**3)) + 0.5)
(output,) = kernel.run(x, on="host")
print("largest difference to numpy:", "below 1e-6" if np.abs(output - expected).max() < 1e-6 else "too large")
print(*[line for line in kernel.ptx.splitlines() if ".global" in line and "param" not in line], sep="\n")
