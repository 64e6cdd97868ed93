// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s --check-prefix=BASIC

// Where two factors compete for an axis, the one whose axes come from the largest tensor wins; of equal tensors the
// first one, and of one tensor the first factor.

// The right operand is larger.
sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @right_operand_is_larger(
// CHECK-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// CHECK-SAME:    -> (tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// CHECK-NEXT:   return %[[DOT_GENERAL]] : tensor<8x64xf32>
// BASIC-LABEL: func.func @right_operand_is_larger(
// BASIC-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// BASIC-SAME:    %arg1: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// BASIC-SAME:    -> tensor<8x64xf32> {
// BASIC-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
// BASIC-NEXT:   return %[[DOT_GENERAL]] : tensor<8x64xf32>
func.func @right_operand_is_larger(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) -> tensor<8x64xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
  return %0 : tensor<8x64xf32>
}

// -----

// The left operand is larger.
sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @left_operand_is_larger(
// CHECK-SAME:    %arg0: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// CHECK-SAME:    -> (tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[DOT_GENERAL]] : tensor<64x8xf32>
// BASIC-LABEL: func.func @left_operand_is_larger(
// BASIC-SAME:    %arg0: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// BASIC-SAME:    %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// BASIC-SAME:    -> tensor<64x8xf32> {
// BASIC-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<64x16xf32>, tensor<16x8xf32>) -> tensor<64x8xf32>
// BASIC-NEXT:   return %[[DOT_GENERAL]] : tensor<64x8xf32>
func.func @left_operand_is_larger(%arg0: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) -> tensor<64x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<64x16xf32>, tensor<16x8xf32>) -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

// -----

// Both are of one size: the first one wins.
sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @first_of_equal_operands(
// CHECK-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[DOT_GENERAL]] : tensor<8x8xf32>
// BASIC-LABEL: func.func @first_of_equal_operands(
// BASIC-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// BASIC-SAME:    %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// BASIC-SAME:    -> tensor<8x8xf32> {
// BASIC-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
// BASIC-NEXT:   return %[[DOT_GENERAL]] : tensor<8x8xf32>
func.func @first_of_equal_operands(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// The result is the largest tensor, and has "a" along its columns.
sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @result_is_larger(
// CHECK-SAME:    %arg0: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// CHECK-SAME:    -> (tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// CHECK-NEXT:   return %[[DOT_GENERAL]] : tensor<32x32xf32>
// BASIC-LABEL: func.func @result_is_larger(
// BASIC-SAME:    %arg0: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// BASIC-SAME:    %arg1: tensor<4x32xf32>)
// BASIC-SAME:    -> (tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// BASIC-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// BASIC-NEXT:   return %[[DOT_GENERAL]] : tensor<32x32xf32>
func.func @result_is_larger(
    %arg0: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<4x32xf32>) -> (tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<32x4xf32>, tensor<4x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

// -----

// A batch dimension against the contraction: the left operand has "a" along the contraction, the right one along the
// batch.
sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @batch_against_contraction(
// CHECK-SAME:    %arg0: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"a", ?}]>},
// CHECK-SAME:    %arg1: tensor<4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}]>})
// CHECK-SAME:    -> (tensor<4x8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}, {?}]>]>}
// CHECK-NEXT:   return %[[DOT_GENERAL]] : tensor<4x8x32xf32>
// BASIC-LABEL: func.func @batch_against_contraction(
// BASIC-SAME:    %arg0: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"a", ?}]>},
// BASIC-SAME:    %arg1: tensor<4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}]>})
// BASIC-SAME:    -> tensor<4x8x32xf32> {
// BASIC-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x16xf32>, tensor<4x16x32xf32>) -> tensor<4x8x32xf32>
// BASIC-NEXT:   return %[[DOT_GENERAL]] : tensor<4x8x32xf32>
func.func @batch_against_contraction(
    %arg0: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"a", ?}]>}, %arg1: tensor<4x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}]>}) -> tensor<4x8x32xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x16xf32>, tensor<4x16x32xf32>) -> tensor<4x8x32xf32>
  return %0 : tensor<4x8x32xf32>
}
