// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate='conservative-propagation=true' | filecheck %s --check-prefix=CONS
// RUN: shardy-opt %s -split-input-file -sdy-op-priority-propagate='conservative-propagation=true' | filecheck %s --check-prefix=CONS
// RUN: shardy-opt %s -split-input-file -sdy-user-priority-propagate='conservative-propagation=true' | filecheck %s --check-prefix=CONS

// A reshape that splits a dimension splits its axes: the major part goes to the major dimension, and an axis that is
// larger than that is split into sub-axes. Conservative propagation (CONS) introduces no sub-axis.

// "a" of size 4 fills the dimension of size 2 by its major half; the minor half goes to the next dimension.
sdy.mesh @mesh = <["a"=4, "b"=2]>

// CHECK-LABEL: func.func @axis_is_split(
// CHECK-SAME:    %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK-SAME:    -> (tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, ?}, {"a":(2)2, ?}, {?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a":(1)2, ?}, {"a":(2)2, ?}, {?}]>]>}
// CHECK-NEXT:   return %[[RESHAPE]] : tensor<2x4x4xf32>
// CONS-LABEL: func.func @axis_is_split(
// CONS-SAME:    %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CONS-SAME:    -> tensor<2x4x4xf32> {
// CONS-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<2x4x4xf32>
// CONS-NEXT:   return %[[RESHAPE]] : tensor<2x4x4xf32>
func.func @axis_is_split(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> tensor<2x4x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<2x4x4xf32>
  return %0 : tensor<2x4x4xf32>
}

// -----

// Two axes: the first one fills the major dimension, the second one goes to the minor one.
sdy.mesh @mesh = <["a"=4, "b"=2]>

// CHECK-LABEL: func.func @one_axis_each(
// CHECK-SAME:    %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a", ?}, {?}]>})
// CHECK-SAME:    -> (tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", ?}, {"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[RESHAPE]] : tensor<2x4x4xf32>
// CONS-LABEL: func.func @one_axis_each(
// CONS-SAME:    %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a", ?}, {?}]>})
// CONS-SAME:    -> (tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {"a", ?}, {?}]>}) {
// CONS-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", ?}, {"a", ?}, {?}]>]>}
// CONS-NEXT:   return %[[RESHAPE]] : tensor<2x4x4xf32>
func.func @one_axis_each(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", "a", ?}, {?}]>}) -> tensor<2x4x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<2x4x4xf32>
  return %0 : tensor<2x4x4xf32>
}

// -----

// Backward: the parts of an axis become the whole axis again.
sdy.mesh @mesh = <["a"=4, "b"=2]>

// CHECK-LABEL: func.func @parts_are_merged(
// CHECK-SAME:    %arg0: tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, ?}, {"a":(2)2, ?}, {?}]>})
// CHECK-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[RESHAPE]] : tensor<8x4xf32>
// CONS-LABEL: func.func @parts_are_merged(
// CONS-SAME:    %arg0: tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, ?}, {"a":(2)2, ?}, {?}]>})
// CONS-SAME:    -> tensor<8x4xf32> {
// CONS-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 : (tensor<2x4x4xf32>) -> tensor<8x4xf32>
// CONS-NEXT:   return %[[RESHAPE]] : tensor<8x4xf32>
func.func @parts_are_merged(%arg0: tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, ?}, {"a":(2)2, ?}, {?}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<2x4x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// The minor dimension alone is sharded: nothing goes through, as the parts of the merged dimension would not be one
// behind the other.
sdy.mesh @mesh = <["a"=4, "b"=2]>

// CHECK-LABEL: func.func @minor_part_alone(
// CHECK-SAME:    %arg0: tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}, {?}]>})
// CHECK-SAME:    -> tensor<8x4xf32> {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 : (tensor<2x4x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:   return %[[RESHAPE]] : tensor<8x4xf32>
// CONS-LABEL: func.func @minor_part_alone(
// CONS-SAME:    %arg0: tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}, {?}]>})
// CONS-SAME:    -> tensor<8x4xf32> {
// CONS-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 : (tensor<2x4x4xf32>) -> tensor<8x4xf32>
// CONS-NEXT:   return %[[RESHAPE]] : tensor<8x4xf32>
func.func @minor_part_alone(%arg0: tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}, {?}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<2x4x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// Back from the merged dimension: the major dimension of size 2 takes one half of "a", the minor one the other half.
sdy.mesh @mesh = <["a"=4, "b"=2]>

// CHECK-LABEL: func.func @halves_for_two_dimensions(
// CHECK-SAME:    %arg0: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, ?}, {"a":(2)2, ?}]>},
// CHECK-SAME:    %arg1: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>})
// CHECK-SAME:    -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}, tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2, ?}, {"a":(2)2, ?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[RESHAPE]], %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}]>]>}
// CHECK-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a":(1)2, ?}, {"a":(2)2, ?}]>]>}
// CHECK-NEXT:   return %[[ADD]], %[[NEGATE]] : tensor<12xf32>, tensor<2x6xf32>
// CONS-LABEL: func.func @halves_for_two_dimensions(
// CONS-SAME:    %arg0: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>},
// CONS-SAME:    %arg1: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>})
// CONS-SAME:    -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}, tensor<2x6xf32>) {
// CONS-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}]>]>}
// CONS-NEXT:   %[[ADD:.*]] = stablehlo.add %[[RESHAPE]], %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}]>]>}
// CONS-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %arg0 : tensor<2x6xf32>
// CONS-NEXT:   return %[[ADD]], %[[NEGATE]] : tensor<12xf32>, tensor<2x6xf32>
func.func @halves_for_two_dimensions(%arg0: tensor<2x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}]>}, %arg1: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}) -> (tensor<12xf32>, tensor<2x6xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<2x6xf32>) -> tensor<12xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<12xf32>
  %2 = stablehlo.negate %arg0 : tensor<2x6xf32>
  return %1, %2 : tensor<12xf32>, tensor<2x6xf32>
}
