"""Draw the memory that one warp touches while it adds up rows; needs the extras `stablehlo` and `codegen`.

python examples/kernels/row_sums_warp.py [FOLDER FOR THE PICTURE]
"""

import sys
from pathlib import Path

from shardy_py.kernels import emit, read_fusion
from shardy_py.kernels.draw.accesses import warp_accesses
from shardy_py.kernels.draw.pictures import draw_svg, draw_text

ROW_SUMS = """
func.func @main(%x: tensor<1024x4096xf32>) -> tensor<1024xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<1024x4096xf32>, tensor<f32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}"""

kernel = emit(read_fusion(ROW_SUMS), device="h100")
launch = kernel.launch
print(f"emitter {kernel.choice.kind.value}: {launch.blocks[0]} blocks of {launch.threads[0]} threads")
accesses = warp_accesses(kernel, block=0, warp=0)
print(draw_text(accesses, width=100))
if len(sys.argv) > 1:
    Path(sys.argv[1], "row_sums_warp.svg").write_text(draw_svg(accesses), encoding="utf-8")
