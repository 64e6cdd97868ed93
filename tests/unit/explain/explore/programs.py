"""Programs that the tests of pages show."""

TWO_LAYERS = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(
    %x: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
    %w0: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
    %w1: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0]
    : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32> loc(#up)
  %1 = stablehlo.tanh %0 : tensor<16x64xf32> loc(#act)
  %2 = stablehlo.dot_general %1, %w1, contracting_dims = [1] x [0]
    : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32> loc(#down)
  %3 = stablehlo.add %2, %x : tensor<16x32xf32> loc(#add)
  return %3 : tensor<16x32xf32>
}
#up = loc("jit(f)/layer_0/dot_general"("model.py":7:3))
#act = loc("jit(f)/layer_0/tanh"("model.py":8:3))
#down = loc("jit(f)/layer_1/dot_general"("model.py":9:3))
#add = loc("jit(f)/layer_1/add"("model.py":10:3))
"""
"""Two matrices of Megatron with names of JAX: the second product is an all-reduce."""

LOOP = """
sdy.mesh @mesh = <["data"=4]>
func.func @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<16x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<i32>, tensor<16x8xf32>
    cond {
      %five = stablehlo.constant dense<5> : tensor<i32>
      %1 = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %one : tensor<i32>
      %3 = stablehlo.sine %c : tensor<16x8xf32>
      stablehlo.return %2, %3 : tensor<i32>, tensor<16x8xf32>
    }
  return %0#1 : tensor<16x8xf32>
}
"""
"""A loop of five runs."""

RIVALS = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>},
    %y: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
    %w: tensor<32x32xf32>) -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %1 = stablehlo.add %0, %y : tensor<16x32xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
    : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  return %2 : tensor<16x32xf32>
}
"""
"""Two arguments that want the same axis: orders decide who gets it."""
