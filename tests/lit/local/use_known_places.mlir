// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -use-known-places | filecheck %s

// A dynamic slice at a place that a constant tells is a slice; what is written at a known place is not gathered.

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @main(
// CHECK:         %[[SLICE:.*]] = stablehlo.slice %arg0 [3:15]
// CHECK:         %[[UPDATE:.*]] = stablehlo.dynamic_update_slice %arg0, %[[SLICE]], %{{.*}}
// CHECK-NEXT:    return %[[UPDATE]]
func.func @main(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %c = stablehlo.constant dense<3> : tensor<i32>
  %0 = stablehlo.dynamic_slice %a, %c, sizes = [12] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>, tensor<i32>) -> tensor<12xf32>
  %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{}]> : tensor<12xf32>
  %2 = stablehlo.dynamic_update_slice %a, %1, %c {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<16xf32>, tensor<12xf32>, tensor<i32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}
