// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s

// A broadcast has factors of the result alone where the operand has no dimension, or one of size 1.

// CHECK-LABEL: func.func @broadcasts(
// CHECK-SAME:    %arg0: tensor<8xf32>,
// CHECK-SAME:    %arg1: tensor<1x8xf32>,
// CHECK-SAME:    %arg2: tensor<f32>)
// CHECK-SAME:    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
// CHECK-NEXT:   %[[BROADCAST_IN_DIM:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [1] {sdy.sharding_rule = #sdy.op_sharding_rule<([j])->([i, j]) {i=4, j=8}>}
// CHECK-NEXT:   %[[BROADCAST_IN_DIM_1:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k])->([j, k]) {i=1, j=4, k=8}>}
// CHECK-NEXT:   %[[BROADCAST_IN_DIM_2:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [] {sdy.sharding_rule = #sdy.op_sharding_rule<([])->([i, j]) {i=4, j=8}>}
// CHECK-NEXT:   return %[[BROADCAST_IN_DIM]], %[[BROADCAST_IN_DIM_1]], %[[BROADCAST_IN_DIM_2]] : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
func.func @broadcasts(%arg0: tensor<8xf32>, %arg1: tensor<1x8xf32>, %arg2: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.broadcast_in_dim %arg1, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  return %0, %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
