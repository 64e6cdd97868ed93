// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s --check-prefix=CONS

// The gradient of a pooling: the operand and the result share the larger dimension, which is blocked conservatively.

// CHECK-LABEL: func.func @pooling_gradient(
// CHECK-SAME:    %arg0: tensor<8x10x4xf32>,
// CHECK-SAME:    %arg1: tensor<8x5x4xf32>)
// CHECK-SAME:    -> tensor<8x10x4xf32> {
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:   %[[SELECT_AND_SCATTER:.*]] = "stablehlo.select_and_scatter"(%arg0, %arg1, %[[CONSTANT]]) <{window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>}> ({
// CHECK-NEXT:   ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT:     %[[COMPARE:.*]] = stablehlo.compare GE, %arg2, %arg3 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CHECK-NEXT:     stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT:   }, {
// CHECK-NEXT:   ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %arg2, %arg3 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CHECK-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// CHECK-NEXT:   }) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k, l], [i, j, l], [])->([i, k, l]) {i=8, j=5, k=10, l=4} need_replication={j} permutation={k}>} : (tensor<8x10x4xf32>, tensor<8x5x4xf32>, tensor<f32>) -> tensor<8x10x4xf32>
// CHECK-NEXT:   return %[[SELECT_AND_SCATTER]] : tensor<8x10x4xf32>
// CONS-LABEL: func.func @pooling_gradient(
// CONS-SAME:    %arg0: tensor<8x10x4xf32>,
// CONS-SAME:    %arg1: tensor<8x5x4xf32>)
// CONS-SAME:    -> tensor<8x10x4xf32> {
// CONS-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CONS-NEXT:   %[[SELECT_AND_SCATTER:.*]] = "stablehlo.select_and_scatter"(%arg0, %arg1, %[[CONSTANT]]) <{window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>}> ({
// CONS-NEXT:   ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CONS-NEXT:     %[[COMPARE:.*]] = stablehlo.compare GE, %arg2, %arg3 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CONS-NEXT:     stablehlo.return %[[COMPARE]] : tensor<i1>
// CONS-NEXT:   }, {
// CONS-NEXT:   ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CONS-NEXT:     %[[ADD:.*]] = stablehlo.add %arg2, %arg3 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CONS-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// CONS-NEXT:   }) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k, l], [i, j, l], [])->([i, k, l]) {i=8, j=5, k=10, l=4} need_replication={j} permutation={k} blocked_propagation={j, k}>} : (tensor<8x10x4xf32>, tensor<8x5x4xf32>, tensor<f32>) -> tensor<8x10x4xf32>
// CONS-NEXT:   return %[[SELECT_AND_SCATTER]] : tensor<8x10x4xf32>
func.func @pooling_gradient(%arg0: tensor<8x10x4xf32>, %arg1: tensor<8x5x4xf32>) -> tensor<8x10x4xf32> {
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %cst) <{window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8x10x4xf32>, tensor<8x5x4xf32>, tensor<f32>) -> tensor<8x10x4xf32>
  return %0 : tensor<8x10x4xf32>
}
