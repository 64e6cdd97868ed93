// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-op-priority-propagate | filecheck %s --check-prefix=OP
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s --check-prefix=AGGR

// Factors that need communication (reduction, replication, permutation) take part at the fourth level at the latest;
// blocked ones never. Custom rules say of which kind a factor is.

// A blocked factor hands nothing on; the other one does.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @blocked_factor(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} blocked_propagation={j}, custom>}
// CHECK-NEXT:   return %[[CUSTOM_CALL]] : tensor<8x8xf32>
// OP-LABEL: func.func @blocked_factor(
// OP-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// OP-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// OP-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} blocked_propagation={j}, custom>}
// OP-NEXT:   return %[[CUSTOM_CALL]] : tensor<8x8xf32>
// AGGR-LABEL: func.func @blocked_factor(
// AGGR-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// AGGR-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// AGGR-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} blocked_propagation={j}, custom>}
// AGGR-NEXT:   return %[[CUSTOM_CALL]] : tensor<8x8xf32>
func.func @blocked_factor(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.custom_call @mine(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} blocked_propagation={j}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// A factor that needs replication propagates all the same: the partitioner gathers around the op.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @need_replication_factor(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={j}, custom>}
// CHECK-NEXT:   return %[[CUSTOM_CALL]] : tensor<8x8xf32>
// OP-LABEL: func.func @need_replication_factor(
// OP-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// OP-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// OP-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={j}, custom>}
// OP-NEXT:   return %[[CUSTOM_CALL]] : tensor<8x8xf32>
// AGGR-LABEL: func.func @need_replication_factor(
// AGGR-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// AGGR-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// AGGR-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={j}, custom>}
// AGGR-NEXT:   return %[[CUSTOM_CALL]] : tensor<8x8xf32>
func.func @need_replication_factor(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.custom_call @mine(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={j}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// At the third level pass-through factors alone: the columns of %0 get "a" by the pass-through factor of the second
// op before the permutation factor of the first one could give it along rows.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @permutation_factor_comes_later(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} permutation={i}, custom>}
// CHECK-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @mine(%[[CUSTOM_CALL]], %arg1) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} need_replication={i}, custom>}
// CHECK-NEXT:   return %[[CUSTOM_CALL_1]] : tensor<8x8xf32>
// OP-LABEL: func.func @permutation_factor_comes_later(
// OP-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// OP-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// OP-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// OP-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} permutation={i}, custom>}
// OP-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @mine(%[[CUSTOM_CALL]], %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} need_replication={i}, custom>}
// OP-NEXT:   return %[[CUSTOM_CALL_1]] : tensor<8x8xf32>
// AGGR-LABEL: func.func @permutation_factor_comes_later(
// AGGR-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// AGGR-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// AGGR-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// AGGR-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} permutation={i}, custom>}
// AGGR-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @mine(%[[CUSTOM_CALL]], %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} need_replication={i}, custom>}
// AGGR-NEXT:   return %[[CUSTOM_CALL_1]] : tensor<8x8xf32>
func.func @permutation_factor_comes_later(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.custom_call @mine(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} permutation={i}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.custom_call @mine(%0, %arg1) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} need_replication={i}, custom>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// So does a factor that needs replication.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @need_replication_factor_comes_later(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={i}, custom>}
// CHECK-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @mine(%[[CUSTOM_CALL]], %arg1) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} permutation={i}, custom>}
// CHECK-NEXT:   return %[[CUSTOM_CALL_1]] : tensor<8x8xf32>
// OP-LABEL: func.func @need_replication_factor_comes_later(
// OP-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// OP-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// OP-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// OP-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={i}, custom>}
// OP-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @mine(%[[CUSTOM_CALL]], %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} permutation={i}, custom>}
// OP-NEXT:   return %[[CUSTOM_CALL_1]] : tensor<8x8xf32>
// AGGR-LABEL: func.func @need_replication_factor_comes_later(
// AGGR-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// AGGR-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// AGGR-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// AGGR-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={i}, custom>}
// AGGR-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @mine(%[[CUSTOM_CALL]], %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} permutation={i}, custom>}
// AGGR-NEXT:   return %[[CUSTOM_CALL_1]] : tensor<8x8xf32>
func.func @need_replication_factor_comes_later(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.custom_call @mine(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={i}, custom>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.custom_call @mine(%0, %arg1) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} permutation={i}, custom>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// The same with a reduction factor.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @reduction_factor_comes_later(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// CHECK-SAME:    -> (tensor<8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0, %arg2) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i]) {i=8, j=8} reduction={j}, custom>}
// CHECK-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @mine(%arg2, %arg1) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}, custom>}
// CHECK-NEXT:   return %[[CUSTOM_CALL]], %[[CUSTOM_CALL_1]] : tensor<8xf32>, tensor<8x8xf32>
// OP-LABEL: func.func @reduction_factor_comes_later(
// OP-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// OP-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// OP-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// OP-SAME:    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// OP-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0, %arg2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i]) {i=8, j=8} reduction={j}, custom>}
// OP-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @mine(%arg2, %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}, custom>}
// OP-NEXT:   return %[[CUSTOM_CALL]], %[[CUSTOM_CALL_1]] : tensor<8xf32>, tensor<8x8xf32>
// AGGR-LABEL: func.func @reduction_factor_comes_later(
// AGGR-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// AGGR-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// AGGR-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>})
// AGGR-SAME:    -> (tensor<8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
// AGGR-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @mine(%arg0, %arg2) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i]) {i=8, j=8} reduction={j}, custom>}
// AGGR-NEXT:   %[[CUSTOM_CALL_1:.*]] = stablehlo.custom_call @mine(%arg2, %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}, custom>}
// AGGR-NEXT:   return %[[CUSTOM_CALL]], %[[CUSTOM_CALL_1]] : tensor<8xf32>, tensor<8x8xf32>
func.func @reduction_factor_comes_later(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg2: tensor<8x8xf32>) -> (tensor<8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @mine(%arg0, %arg2) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i]) {i=8, j=8} reduction={j}, custom>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @mine(%arg2, %arg1) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8}, custom>} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8x8xf32>
}
