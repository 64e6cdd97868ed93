// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s --check-prefix=CONS

// Convolutions and windows: batch and features as in a product, spatial dimensions as permutation factors, which are
// blocked conservatively (CONS) where windows change the size.

// CHECK-LABEL: func.func @windows(
// CHECK-SAME:    %arg0: tensor<8x10x10x4xf32>,
// CHECK-SAME:    %arg1: tensor<3x3x4x16xf32>)
// CHECK-SAME:    -> (tensor<8x8x8x16xf32>, tensor<8x5x5x4xf32>) {
// CHECK-NEXT:   %[[CONVOLUTION:.*]] = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k, l], [n, o, l, m])->([i, j, k, m]) {i=8, j=8, k=8, l=4, m=16, n=1, o=1} reduction={l} permutation={j, k}>}
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:   %[[REDUCE_WINDOW:.*]] = "stablehlo.reduce_window"(%arg0, %[[CONSTANT]]) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
// CHECK-NEXT:   ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT:     %[[MAXIMUM:.*]] = stablehlo.maximum %arg2, %arg3 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CHECK-NEXT:     stablehlo.return %[[MAXIMUM]] : tensor<f32>
// CHECK-NEXT:   }) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k, l], [])->([i, j, k, l]) {i=8, j=5, k=5, l=4} permutation={j, k}>} : (tensor<8x10x10x4xf32>, tensor<f32>) -> tensor<8x5x5x4xf32>
// CHECK-NEXT:   return %[[CONVOLUTION]], %[[REDUCE_WINDOW]] : tensor<8x8x8x16xf32>, tensor<8x5x5x4xf32>
// CONS-LABEL: func.func @windows(
// CONS-SAME:    %arg0: tensor<8x10x10x4xf32>,
// CONS-SAME:    %arg1: tensor<3x3x4x16xf32>)
// CONS-SAME:    -> (tensor<8x8x8x16xf32>, tensor<8x5x5x4xf32>) {
// CONS-NEXT:   %[[CONVOLUTION:.*]] = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding_rule = #sdy.op_sharding_rule<([i, l, m, j], [n, o, j, k])->([i, p, q, k]) {i=8, j=4, k=16, l=1, m=1, n=1, o=1, p=1, q=1} reduction={j}>}
// CONS-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CONS-NEXT:   %[[REDUCE_WINDOW:.*]] = "stablehlo.reduce_window"(%arg0, %[[CONSTANT]]) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
// CONS-NEXT:   ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CONS-NEXT:     %[[MAXIMUM:.*]] = stablehlo.maximum %arg2, %arg3 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CONS-NEXT:     stablehlo.return %[[MAXIMUM]] : tensor<f32>
// CONS-NEXT:   }) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k, l], [])->([i, j, k, l]) {i=8, j=5, k=5, l=4} permutation={j, k} blocked_propagation={j, k}>} : (tensor<8x10x10x4xf32>, tensor<f32>) -> tensor<8x5x5x4xf32>
// CONS-NEXT:   return %[[CONVOLUTION]], %[[REDUCE_WINDOW]] : tensor<8x8x8x16xf32>, tensor<8x5x5x4xf32>
func.func @windows(%arg0: tensor<8x10x10x4xf32>, %arg1: tensor<3x3x4x16xf32>) -> (tensor<8x8x8x16xf32>, tensor<8x5x5x4xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x10x10x4xf32>, tensor<3x3x4x16xf32>) -> tensor<8x8x8x16xf32>
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%arg0, %cst) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<8x10x10x4xf32>, tensor<f32>) -> tensor<8x5x5x4xf32>
  return %0, %1 : tensor<8x8x8x16xf32>, tensor<8x5x5x4xf32>
}
