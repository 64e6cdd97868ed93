// RUN: shardy-opt %s -sdy-constant-or-scalar-merger | filecheck %s

// Equal constants with equal shardings become one again, as do equal broadcasts of a scalar; others stay apart.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>,
// CHECK-SAME:    %arg1: tensor<f32>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} dense<1.000000e+00> : tensor<8x8xf32>
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %[[CONSTANT]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[ADD_1:.*]] = stablehlo.add %[[ADD]], %[[CONSTANT]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[CONSTANT_1:.*]] = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} dense<1.000000e+00> : tensor<8x8xf32>
// CHECK-NEXT:   %[[ADD_2:.*]] = stablehlo.add %[[ADD_1]], %[[CONSTANT_1]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[BROADCAST_IN_DIM:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[SUBTRACT:.*]] = stablehlo.subtract %[[BROADCAST_IN_DIM]], %[[BROADCAST_IN_DIM]] : tensor<8x8xf32>
// CHECK-NEXT:   return %[[ADD]], %[[ADD_1]], %[[ADD_2]], %[[SUBTRACT]] : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<f32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %cst = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} dense<1.0> : tensor<8x8xf32>
  %0 = stablehlo.add %arg0, %cst : tensor<8x8xf32>
  %cst_0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} dense<1.0> : tensor<8x8xf32>
  %1 = stablehlo.add %0, %cst_0 : tensor<8x8xf32>
  %cst_1 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} dense<1.0> : tensor<8x8xf32>
  %2 = stablehlo.add %1, %cst_1 : tensor<8x8xf32>
  %3 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %5 = stablehlo.subtract %3, %4 : tensor<8x8xf32>
  return %0, %1, %2, %5 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
