// RUN: shardy-opt %s -split-input-file -sdy-apply-sharding-constraints | filecheck %s

// A constraint sets the sharding of its input if that has none, and no constraint that differs.

// One constraint: %0 gets its sharding.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @input_gets_the_sharding(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[TANH]] <@mesh, [{"a"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
func.func @input_gets_the_sharding(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// %0 has a sharding.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @input_has_a_sharding(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>}
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[TANH]] <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
func.func @input_has_a_sharding(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>} : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Two constraints that differ: %0 gets none.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @two_constraints(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[TANH]] <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT_1:.*]] = sdy.sharding_constraint %[[TANH]] <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[SHARDING_CONSTRAINT]], %[[SHARDING_CONSTRAINT_1]] : tensor<8x8xf32>, tensor<8x8xf32>
func.func @two_constraints(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A constraint without uses sets the sharding of its input, too.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @dangling_constraint(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[TANH]] <@mesh, [{"a"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// CHECK-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %[[TANH]] : tensor<8x8xf32>
// CHECK-NEXT:   return %[[NEGATE]] : tensor<8x8xf32>
func.func @dangling_constraint(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %2 = stablehlo.negate %0 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// The shardings of a manual computation's operands count as constraints.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @manual_computation(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%[[TANH]]) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %arg1 : tensor<4x8xf32>
// CHECK-NEXT:     sdy.return %[[NEGATE]] : tensor<4x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[MANUAL_COMPUTATION]] : tensor<8x8xf32>
func.func @manual_computation(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
    %2 = stablehlo.negate %arg1 : tensor<4x8xf32>
    sdy.return %2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
