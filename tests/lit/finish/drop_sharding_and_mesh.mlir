// RUN: shardy-opt %s -sdy-drop-sharding-and-mesh | filecheck %s --check-prefix=NONE

// Shardings go from ops, arguments and results, and meshes go as well.

// NONE-NOT: sdy.
// NONE-LABEL: func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
// NONE-NEXT:    %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// NONE-NEXT:    return %[[TANH]]
// NONE-NOT: sdy.
sdy.mesh @mesh = <["a"=2]>

func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
