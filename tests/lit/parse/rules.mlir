// RUN: shardy-opt %s | filecheck %s
// RUN: shardy-opt %s -sdy-drop-sharding-rules | filecheck %s --check-prefix=DROP

// Sharding rules: several factors of a dimension, every kind of factor, factors behind the letters.

// CHECK-LABEL: func.func @rules(
// CHECK-SAME:    %arg0: tensor<8x4xf32>)
// CHECK-SAME:    -> tensor<8x4xf32> {
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @f(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k])->([ij, k]) {i=2, j=4, k=4}>}
// CHECK-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @f(%[[CUSTOM_CALL]]) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} need_replication={j} permutation={i} blocked_propagation={i, j}, custom>}
// CHECK-NEXT:   %[[CUSTOM_CALL_2:.*]] = stablehlo.custom_call @f(%[[CUSTOM_CALL_1]], %[[CUSTOM_CALL_1]]) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [i, k])->([i, j]) {i=8, j=4, k=4} reduction={k}>}
// CHECK-NEXT:   return %[[CUSTOM_CALL_2]] : tensor<8x4xf32>
// DROP-LABEL: func.func @rules(
// DROP-SAME:    %arg0: tensor<8x4xf32>)
// DROP-SAME:    -> tensor<8x4xf32> {
// DROP-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @f(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// DROP-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @f(%[[CUSTOM_CALL]]) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} need_replication={j} permutation={i} blocked_propagation={i, j}, custom>}
// DROP-NEXT:   %[[CUSTOM_CALL_2:.*]] = stablehlo.custom_call @f(%[[CUSTOM_CALL_1]], %[[CUSTOM_CALL_1]]) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
// DROP-NEXT:   return %[[CUSTOM_CALL_2]] : tensor<8x4xf32>
func.func @rules(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.custom_call @f(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k])->([ij, k]) {i=2, j=4, k=4}>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.custom_call @f(%0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4} need_replication={j} permutation={i} blocked_propagation={i, j}, custom>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.custom_call @f(%1, %1) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [i, k])->([i, j]) {i=8, j=4, k=4} reduction={k}>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
