// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s

// A reduction has reduction factors along the dimensions that are gone; with several operands all share them.

// CHECK-LABEL: func.func @reductions(
// CHECK-SAME:    %arg0: tensor<4x6x8xf32>,
// CHECK-SAME:    %arg1: tensor<4x6x8xi32>)
// CHECK-SAME:    -> (tensor<6xf32>, tensor<4x8xf32>, tensor<4x8xi32>) {
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:   %[[CONSTANT_1:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:   %[[REDUCE:.*]] = stablehlo.reduce(%arg0 init: %[[CONSTANT]]) applies stablehlo.add across dimensions = [0, 2] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k], [])->([j]) {i=4, j=6, k=8} reduction={i, k}>}
// CHECK-NEXT:   %[[REDUCE_1:.*]]:2 = stablehlo.reduce(%arg0 init: %[[CONSTANT]]), (%arg1 init: %[[CONSTANT_1]]) across dimensions = [1] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k], [i, j, k], [], [])->([i, k], [i, k]) {i=4, j=6, k=8} reduction={j}>}
// CHECK-NEXT:    reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<i32>, %arg5: tensor<i32>)  {
// CHECK-NEXT:     %[[MAXIMUM:.*]] = stablehlo.maximum %arg2, %arg4 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CHECK-NEXT:     %[[MAXIMUM_1:.*]] = stablehlo.maximum %arg3, %arg5 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CHECK-NEXT:     stablehlo.return %[[MAXIMUM]], %[[MAXIMUM_1]] : tensor<f32>, tensor<i32>
// CHECK-NEXT:   }
// CHECK-NEXT:   return %[[REDUCE]], %[[REDUCE_1]]#0, %[[REDUCE_1]]#1 : tensor<6xf32>, tensor<4x8xf32>, tensor<4x8xi32>
func.func @reductions(%arg0: tensor<4x6x8xf32>, %arg1: tensor<4x6x8xi32>) -> (tensor<6xf32>, tensor<4x8xf32>, tensor<4x8xi32>) {
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0, 2] : (tensor<4x6x8xf32>, tensor<f32>) -> tensor<6xf32>
  %1:2 = stablehlo.reduce(%arg0 init: %cst), (%arg1 init: %c) across dimensions = [1] : (tensor<4x6x8xf32>, tensor<4x6x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%c1: tensor<i32>, %d: tensor<i32>) {
      %2 = stablehlo.maximum %a, %b : tensor<f32>
      %3 = stablehlo.maximum %c1, %d : tensor<i32>
      stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
    }
  return %0, %1#0, %1#1 : tensor<6xf32>, tensor<4x8xf32>, tensor<4x8xi32>
}
