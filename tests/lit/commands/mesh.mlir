// RUN: shardy propagate %s --quiet --mesh data=4,model=2 --in-sharding arg0=data,model | filecheck %s

// A module without a mesh gets one from the command line.

// CHECK: sdy.mesh @mesh = <["data"=4, "model"=2]>
// CHECK: func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>})
// CHECK-NEXT: %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {"model"}]>]>}
func.func @main(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
