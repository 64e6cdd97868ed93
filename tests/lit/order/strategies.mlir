// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate='propagation-strategy=aggressive' | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate='propagation-strategy=basic' | filecheck %s --check-prefix=BASIC
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate='propagation-strategy=basic-then-aggressive' | filecheck %s --check-prefix=BOTH
// RUN: shardy-opt %s -split-input-file -sdy-op-priority-propagate='propagation-strategy=basic-then-aggressive' | filecheck %s --check-prefix=BOTH

// With both strategies, basic propagation reaches its end before aggressive propagation begins, at every level. What
// is decided without conflict then stays, whatever its size.

// The first op has a conflict over "a": aggressive propagation gives %0 dimension 0 at once, from the operand that
// comes first. Basic first lets the last op, which has no conflict, give %0 dimension 1.
sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @what_has_no_conflict_comes_first(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// CHECK-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ADD]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   %[[MULTIPLY:.*]] = stablehlo.multiply %[[TANH]], %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[MULTIPLY]] : tensor<8x8xf32>
// BASIC-LABEL: func.func @what_has_no_conflict_comes_first(
// BASIC-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// BASIC-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// BASIC-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// BASIC-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// BASIC-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// BASIC-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ADD]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// BASIC-NEXT:   %[[MULTIPLY:.*]] = stablehlo.multiply %[[TANH]], %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// BASIC-NEXT:   return %[[MULTIPLY]] : tensor<8x8xf32>
// BOTH-LABEL: func.func @what_has_no_conflict_comes_first(
// BOTH-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// BOTH-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// BOTH-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// BOTH-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// BOTH-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// BOTH-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ADD]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// BOTH-NEXT:   %[[MULTIPLY:.*]] = stablehlo.multiply %[[TANH]], %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// BOTH-NEXT:   return %[[MULTIPLY]] : tensor<8x8xf32>
func.func @what_has_no_conflict_comes_first(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  %2 = stablehlo.multiply %1, %arg2 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// A dot with "a" along rows and columns.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @dot_with_conflict(
// CHECK-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// CHECK-SAME:    %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   return %[[ADD]] : tensor<8x4xf32>
// BASIC-LABEL: func.func @dot_with_conflict(
// BASIC-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// BASIC-SAME:    %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// BASIC-SAME:    %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>})
// BASIC-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) {
// BASIC-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// BASIC-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// BASIC-NEXT:   return %[[ADD]] : tensor<8x4xf32>
// BOTH-LABEL: func.func @dot_with_conflict(
// BOTH-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// BOTH-SAME:    %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// BOTH-SAME:    %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// BOTH-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// BOTH-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// BOTH-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// BOTH-NEXT:   return %[[ADD]] : tensor<8x4xf32>
func.func @dot_with_conflict(
    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}, %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.add %0, %arg2 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
