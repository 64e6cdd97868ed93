// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -compose-slices | filecheck %s

// A slice of a padded tensor is a pad of its source, whose shards it keeps.

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @main(
// CHECK:         %[[PAD:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [-1], high = [1], interior = [0]
// CHECK-NEXT:    return %[[PAD]]
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %z: tensor<f32>) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = stablehlo.pad %a, %z, low = [1], high = [1], interior = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = stablehlo.slice %0 [2:10] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<10xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
