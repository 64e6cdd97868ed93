"""Small modules on which schedules make a difference."""

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

MLP = """\
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(
    %x: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>},
    %w: tensor<128x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
    %v: tensor<512x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {"data"}]>}) -> tensor<128x128xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x128xf32>, tensor<128x512xf32>) -> tensor<64x512xf32>
  %1 = stablehlo.tanh %0 : tensor<64x512xf32>
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
      : (tensor<64x512xf32>, tensor<512x128xf32>) -> tensor<64x128xf32>
  %3 = stablehlo.add %2, %x : tensor<64x128xf32>
  %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<64x128xf32>) -> tensor<128x64xf32>
  %5 = stablehlo.dot_general %4, %3, contracting_dims = [1] x [0]
      : (tensor<128x64xf32>, tensor<64x128xf32>) -> tensor<128x128xf32>
  return %5 : tensor<128x128xf32>
}
"""
"""Two layers whose weights are split over both axes: there are many schedules with different costs."""

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
