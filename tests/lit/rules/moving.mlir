// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s --check-prefix=CONS

// Ops that move elements along a dimension (slice, pad, reverse) have a permutation factor there, a concatenation one
// that needs replication; a dimension that stays as it is has a pass-through factor. Conservatively (CONS), nothing
// goes through a dimension whose size changes.

// CHECK-LABEL: func.func @moves(
// CHECK-SAME:    %arg0: tensor<8x6xf32>,
// CHECK-SAME:    %arg1: tensor<4x6xf32>,
// CHECK-SAME:    %arg2: tensor<f32>)
// CHECK-SAME:    -> (tensor<4x6xf32>, tensor<12x6xf32>, tensor<10x6xf32>, tensor<8x6xf32>, tensor<6x8xf32>) {
// CHECK-NEXT:   %[[SLICE:.*]] = stablehlo.slice %arg0 [2:6, 0:6] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=6} permutation={i}>}
// CHECK-NEXT:   %[[CONCATENATE:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=12, j=6} need_replication={i}>}
// CHECK-NEXT:   %[[PAD:.*]] = stablehlo.pad %arg0, %arg2, low = [1, 0], high = [1, 0], interior = [0, 0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([i, j]) {i=8, j=6} permutation={i}>}
// CHECK-NEXT:   %[[REVERSE:.*]] = stablehlo.reverse %arg0, dims = [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=6} permutation={i}>}
// CHECK-NEXT:   %[[TRANSPOSE:.*]] = stablehlo.transpose %arg0, dims = [1, 0] {sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([i, j]) {i=6, j=8}>}
// CHECK-NEXT:   return %[[SLICE]], %[[CONCATENATE]], %[[PAD]], %[[REVERSE]], %[[TRANSPOSE]] : tensor<4x6xf32>, tensor<12x6xf32>, tensor<10x6xf32>, tensor<8x6xf32>, tensor<6x8xf32>
// CONS-LABEL: func.func @moves(
// CONS-SAME:    %arg0: tensor<8x6xf32>,
// CONS-SAME:    %arg1: tensor<4x6xf32>,
// CONS-SAME:    %arg2: tensor<f32>)
// CONS-SAME:    -> (tensor<4x6xf32>, tensor<12x6xf32>, tensor<10x6xf32>, tensor<8x6xf32>, tensor<6x8xf32>) {
// CONS-NEXT:   %[[SLICE:.*]] = stablehlo.slice %arg0 [2:6, 0:6] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=6} permutation={i} blocked_propagation={i}>}
// CONS-NEXT:   %[[CONCATENATE:.*]] = stablehlo.concatenate %arg0, %arg1, dim = 0 {sdy.sharding_rule = #sdy.op_sharding_rule<([j, i], [k, i])->([l, i]) {i=6, j=1, k=1, l=1}>}
// CONS-NEXT:   %[[PAD:.*]] = stablehlo.pad %arg0, %arg2, low = [1, 0], high = [1, 0], interior = [0, 0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [])->([i, j]) {i=8, j=6} permutation={i} blocked_propagation={i}>}
// CONS-NEXT:   %[[REVERSE:.*]] = stablehlo.reverse %arg0, dims = [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=6} permutation={i}>}
// CONS-NEXT:   %[[TRANSPOSE:.*]] = stablehlo.transpose %arg0, dims = [1, 0] {sdy.sharding_rule = #sdy.op_sharding_rule<([j, i])->([i, j]) {i=6, j=8}>}
// CONS-NEXT:   return %[[SLICE]], %[[CONCATENATE]], %[[PAD]], %[[REVERSE]], %[[TRANSPOSE]] : tensor<4x6xf32>, tensor<12x6xf32>, tensor<10x6xf32>, tensor<8x6xf32>, tensor<6x8xf32>
func.func @moves(%arg0: tensor<8x6xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<f32>) -> (tensor<4x6xf32>, tensor<12x6xf32>, tensor<10x6xf32>, tensor<8x6xf32>, tensor<6x8xf32>) {
  %0 = stablehlo.slice %arg0 [2:6, 0:6] : (tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<12x6xf32>
  %2 = stablehlo.pad %arg0, %arg2, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<8x6xf32>, tensor<f32>) -> tensor<10x6xf32>
  %3 = stablehlo.reverse %arg0, dims = [0] : tensor<8x6xf32>
  %4 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
  return %0, %1, %2, %3, %4 : tensor<4x6xf32>, tensor<12x6xf32>, tensor<10x6xf32>, tensor<8x6xf32>, tensor<6x8xf32>
}
