// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s

// Slices at an offset that is known at run time only: a dimension that is taken whole passes through, another one
// needs replication, and the slice hands nothing on along it.

// CHECK-LABEL: func.func @at_an_offset(
// CHECK-SAME:    %arg0: tensor<16x8xf32>,
// CHECK-SAME:    %arg1: tensor<4x8xf32>,
// CHECK-SAME:    %arg2: tensor<i32>)
// CHECK-SAME:    -> (tensor<4x8xf32>, tensor<16x8xf32>) {
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:   %[[DYNAMIC_SLICE:.*]] = stablehlo.dynamic_slice %arg0, %arg2, %[[CONSTANT]], sizes = [4, 8] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [], [])->([i, j]) {i=16, j=8} need_replication={i} blocked_propagation={i}>}
// CHECK-NEXT:   %[[DYNAMIC_UPDATE_SLICE:.*]] = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %[[CONSTANT]] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [j, k], [], [])->([i, k]) {i=16, j=4, k=8} need_replication={j}>}
// CHECK-NEXT:   return %[[DYNAMIC_SLICE]], %[[DYNAMIC_UPDATE_SLICE]] : tensor<4x8xf32>, tensor<16x8xf32>
func.func @at_an_offset(%arg0: tensor<16x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<i32>) -> (tensor<4x8xf32>, tensor<16x8xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %arg0, %arg2, %c, sizes = [4, 8] : (tensor<16x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  %1 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %c : (tensor<16x8xf32>, tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<16x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<16x8xf32>
}
