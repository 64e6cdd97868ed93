// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s

// An op without uses is erased at its first turn, before it could give a sharding on, and its operands lose a use. An
// op with a side effect stays.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @dead_ops_shard_nothing(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg1 : tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @dead_ops_shard_nothing(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  %1 = stablehlo.tanh %arg1 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// %1 is dead only once %2 is gone; by then %1 had its turn, and %arg1 its sharding.
sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @op_that_is_dead_after_its_turn(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @op_that_is_dead_after_its_turn(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  %2 = stablehlo.tanh %arg1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// A custom call with a side effect has no uses and stays.
sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @side_effect_stays(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @print(%[[TANH]]) {has_side_effect = true}
// CHECK-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[NEGATE]] : tensor<8x8xf32>
func.func @side_effect_stays(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  %1 = stablehlo.custom_call @print(%0) {has_side_effect = true} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.negate %arg0 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
