// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=false' | filecheck %s

// Reshapes match dimensions by their common factors, major first; what has no counterpart gets factors of its own.

// CHECK-LABEL: func.func @reshapes(
// CHECK-SAME:    %arg0: tensor<8x4xf32>,
// CHECK-SAME:    %arg1: tensor<6x4xf32>,
// CHECK-SAME:    %arg2: tensor<1x8xf32>,
// CHECK-SAME:    %arg3: tensor<10xf32>)
// CHECK-SAME:    -> (tensor<2x4x4xf32>, tensor<32xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<2x5xf32>) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k])->([i, j, k]) {i=2, j=4, k=4}>}
// CHECK-NEXT:   %[[RESHAPE_1:.*]] = stablehlo.reshape %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([ij]) {i=8, j=4}>}
// CHECK-NEXT:   %[[RESHAPE_2:.*]] = stablehlo.reshape %arg1 {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, l])->([ik, m]) {i=2, j=3, k=4, l=4, m=3}>}
// CHECK-NEXT:   %[[RESHAPE_3:.*]] = stablehlo.reshape %arg2 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j]) {i=1, j=8}>}
// CHECK-NEXT:   %[[RESHAPE_4:.*]] = stablehlo.reshape %arg3 {sdy.sharding_rule = #sdy.op_sharding_rule<([ij])->([i, j]) {i=2, j=5}>}
// CHECK-NEXT:   return %[[RESHAPE]], %[[RESHAPE_1]], %[[RESHAPE_2]], %[[RESHAPE_3]], %[[RESHAPE_4]] : tensor<2x4x4xf32>, tensor<32xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<2x5xf32>
func.func @reshapes(%arg0: tensor<8x4xf32>, %arg1: tensor<6x4xf32>, %arg2: tensor<1x8xf32>, %arg3: tensor<10xf32>) -> (tensor<2x4x4xf32>, tensor<32xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<2x5xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<2x4x4xf32>
  %1 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<32xf32>
  %2 = stablehlo.reshape %arg1 : (tensor<6x4xf32>) -> tensor<8x3xf32>
  %3 = stablehlo.reshape %arg2 : (tensor<1x8xf32>) -> tensor<8xf32>
  %4 = stablehlo.reshape %arg3 : (tensor<10xf32>) -> tensor<2x5xf32>
  return %0, %1, %2, %3, %4 : tensor<2x4x4xf32>, tensor<32xf32>, tensor<8x3xf32>, tensor<8xf32>, tensor<2x5xf32>
}
