// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s

// Products have batch factors, factors of either operand, and reduction factors along the contraction.

// CHECK-LABEL: func.func @products(
// CHECK-SAME:    %arg0: tensor<2x4x8xf32>,
// CHECK-SAME:    %arg1: tensor<2x8x16xf32>,
// CHECK-SAME:    %arg2: tensor<4x8xf32>,
// CHECK-SAME:    %arg3: tensor<8xf32>)
// CHECK-SAME:    -> (tensor<2x4x16xf32>, tensor<4xf32>, tensor<4x8x8xf32>) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, l], [i, l, k])->([i, j, k]) {i=2, j=4, k=16, l=8} reduction={l}>}
// CHECK-NEXT:   %[[DOT:.*]] = stablehlo.dot %arg2, %arg3 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [j])->([i]) {i=4, j=8} reduction={j}>}
// CHECK-NEXT:   %[[DOT_GENERAL_1:.*]] = stablehlo.dot_general %arg2, %arg3, contracting_dims = [] x [] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k])->([i, j, k]) {i=4, j=8, k=8}>}
// CHECK-NEXT:   return %[[DOT_GENERAL]], %[[DOT]], %[[DOT_GENERAL_1]] : tensor<2x4x16xf32>, tensor<4xf32>, tensor<4x8x8xf32>
func.func @products(%arg0: tensor<2x4x8xf32>, %arg1: tensor<2x8x16xf32>, %arg2: tensor<4x8xf32>, %arg3: tensor<8xf32>) -> (tensor<2x4x16xf32>, tensor<4xf32>, tensor<4x8x8xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x8xf32>, tensor<2x8x16xf32>) -> tensor<2x4x16xf32>
  %1 = stablehlo.dot %arg2, %arg3 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4xf32>
  %2 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [] x [] : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8x8xf32>
  return %0, %1, %2 : tensor<2x4x16xf32>, tensor<4xf32>, tensor<4x8x8xf32>
}
