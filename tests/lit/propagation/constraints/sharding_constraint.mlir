// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-op-priority-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-user-priority-propagate | filecheck %s

// A sharding constraint is an op like any other: its result has a sharding of its own, and what is open propagates
// through it both ways.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @open_constraint(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"a", ?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
func.func @open_constraint(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{?}, {?}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @closed_constraint(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[SHARDING_CONSTRAINT]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @closed_constraint(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// A reshard is as good as a constraint here.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @reshard(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[RESHARD]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @reshard(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
