// RUN: shardy-opt %s -sdy-basic-propagate='keep-sharding-rules=true' | filecheck %s
// RUN: shardy-opt %s -sdy-aggressive-propagate='keep-sharding-rules=true' | filecheck %s
// RUN: shardy-opt %s -sdy-op-priority-propagate='keep-sharding-rules=true' | filecheck %s
// RUN: shardy-opt %s -sdy-user-priority-propagate='keep-sharding-rules=true' | filecheck %s
// RUN: shardy-opt %s -sdy-user-priority-propagate='keep-sharding-rules=false' | filecheck %s --check-prefix=DROP

// Propagation leaves on each op the rule that it used if asked to; a rule that the user wrote stays in any case.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @rules_stay(
// CHECK-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<16x4xf32>)
// CHECK-SAME:    -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>}
// CHECK-NEXT:   %[[TRANSPOSE:.*]] = stablehlo.transpose %[[DOT_GENERAL]], dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([i, j]) {i=4, j=8}>}
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%[[TRANSPOSE]]) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} need_replication={i}, custom>}
// CHECK-NEXT:   return %[[CUSTOM_CALL]] : tensor<4x8xf32>
// DROP-LABEL: func.func @rules_stay(
// DROP-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// DROP-SAME:    %arg1: tensor<16x4xf32>)
// DROP-SAME:    -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// DROP-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// DROP-NEXT:   %[[TRANSPOSE:.*]] = stablehlo.transpose %[[DOT_GENERAL]], dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// DROP-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%[[TRANSPOSE]]) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} need_replication={i}, custom>}
// DROP-NEXT:   return %[[CUSTOM_CALL]] : tensor<4x8xf32>
func.func @rules_stay(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<16x4xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.custom_call @mine(%1) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} need_replication={i}, custom>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
