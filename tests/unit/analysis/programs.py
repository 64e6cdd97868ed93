"""Small modules on which orderings make a difference."""

LAYER = """\
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}, %w: tensor<16x4xf32>,
                %y: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.add %0, %y : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""
"""By default the sum decides how the product is sharded; with contractions first the product does."""

BARE = """\
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = "toy.move"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""
"""Neither a mesh nor shardings, and an op that no installed plugin knows."""

TOY_PLUGIN = """\
import shardy_py as sdy

toy = sdy.Dialect("toy")
toy.op("toy.move", traits=[sdy.PassThrough], rule="i j -> i j")


@sdy.hookimpl
def shardy_register_dialects():
    return [toy]
"""
