"""MLIR in, MLIR out: for the next compiler, for XLA, and for each device; needs the extra `stablehlo`.

python examples/compiler_pipeline/mlir_in_and_out.py [FOLDER FOR THE MODULES AND A PICTURE]
"""

import sys
import tempfile
from pathlib import Path

import shardy_py as sdy
from shardy_py.layout import parse_array
from shardy_py.layout.drawing import draw_svg

PROGRAM = Path(__file__).resolve().parents[1] / "gpt_train.mlir"
folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="modules-"))

result = sdy.propagate(PROGRAM, local=True)
local = result.local()
modules = {
    "propagated.mlir": result.text,  # every tensor with its sharding, reshards between them
    "for_xla.mlir": str(result.for_xla()),  # what XLA takes: constraints instead of shardings on ops
    "local.mlir": local.text,  # what a device runs: shards and collectives, no partitioner needed
}
print(f"{'module':18}{'KiB':>6}{'shardings':>11}{'constraints':>13}{'collectives':>13}")
for name, text in modules.items():
    (folder / name).write_text(text, encoding="utf-8")
    shardings = text.count("sdy.sharding =") + text.count("sdy.sharding_per_value")
    constraints = text.count("sdy.sharding_constraint ")
    collectives = sum(text.count(f"stablehlo.{kind}") for kind in ("all_reduce", "all_gather", "reduce_scatter"))
    print(f"{name:18}{len(text) // 1024:6}{shardings:11}{constraints:13}{collectives:13}")

print()
for index, argument in enumerate(local.arguments[:6]):
    print(f"arg{index}: a device holds {argument.shard_shape}, {result.sharding(f'arg{index}')}")

# Where each element of a small shard lies on a TPU: tiles of 8 x 128 elements, here shortened to 2 x 4.
(folder / "tiles.svg").write_text(draw_svg(parse_array("f32[5,6]{1,0:T(2,4)}")), encoding="utf-8")
print(f"\nin {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
