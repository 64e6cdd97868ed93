// RUN: shardy-opt %s -sdy-update-non-divisible-input-output-shardings | filecheck %s

// Inputs and outputs are sharded by the longest prefix of their axes that divides their dimensions.

sdy.mesh @mesh = <["a"=2, "b"=3, "c"=4]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"c":(1)2}]>},
// CHECK-SAME:    %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c":(1)2}, {?}]>})
// CHECK-SAME:    -> (tensor<5x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a", "b", ?}]>}) {
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"c"}, {"a", "b", ?}]>]>} dense<0.000000e+00> : tensor<5x6xf32>
// CHECK-NEXT:   return %[[CONSTANT]] : tensor<5x6xf32>
func.func @main(%arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {"c"}]>}, %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {?}]>}) -> (tensor<5x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {"a", "b", ?}]>}) {
  %0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"c"}, {"a", "b", ?}]>]>} dense<0.0> : tensor<5x6xf32>
  return %0 : tensor<5x6xf32>
}
