// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s

// Known custom calls have rules, unknown ones none; a rule that the user wrote stays.

// CHECK-LABEL: func.func @calls(
// CHECK-SAME:    %arg0: tensor<4x8xf32>)
// CHECK-SAME:    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @annotate_device_placement(%arg0) {has_side_effect = true, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8}>}
// CHECK-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @unknown(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:   %[[CUSTOM_CALL_2:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} permutation={j}, custom>}
// CHECK-NEXT:   return %[[CUSTOM_CALL]], %[[CUSTOM_CALL_1]], %[[CUSTOM_CALL_2]] : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
func.func @calls(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.custom_call @annotate_device_placement(%arg0) {has_side_effect = true} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.custom_call @unknown(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.custom_call @mine(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} permutation={j}, custom>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0, %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
