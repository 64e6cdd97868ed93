// RUN: shardy-opt %s -sdy-drop-sharding-rules | filecheck %s

// Rules go, except those that the user wrote.

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<4x8xf32>)
// CHECK-SAME:    -> tensor<4x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<4x8xf32>
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%[[TANH]]) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} permutation={j}, custom>}
// CHECK-NEXT:   return %[[CUSTOM_CALL]] : tensor<4x8xf32>
func.func @main(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.tanh %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8}>} : tensor<4x8xf32>
  %1 = stablehlo.custom_call @mine(%0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} permutation={j}, custom>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
