// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules -sdy-drop-sharding-rules | filecheck %s --check-prefix=DROP

// Elementwise ops have one factor per dimension, which all operands and results share; a scalar operand has none.

// CHECK-LABEL: func.func @elementwise(
// CHECK-SAME:    %arg0: tensor<4x6xf32>,
// CHECK-SAME:    %arg1: tensor<4x6xf32>,
// CHECK-SAME:    %arg2: tensor<4x6xi1>,
// CHECK-SAME:    %arg3: tensor<f32>)
// CHECK-SAME:    -> tensor<4x6xf32> {
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %arg1 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=4, j=6}>}
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ADD]] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=6}>}
// CHECK-NEXT:   %[[COMPARE:.*]] = stablehlo.compare LT, %[[ADD]], %[[TANH]] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=4, j=6}>}
// CHECK-NEXT:   %[[SELECT:.*]] = stablehlo.select %[[COMPARE]], %[[ADD]], %[[TANH]] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j], [i, j])->([i, j]) {i=4, j=6}>}
// CHECK-NEXT:   %[[CLAMP:.*]] = stablehlo.clamp %arg3, %[[SELECT]], %arg3 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [i, j], [])->([i, j]) {i=4, j=6}>}
// CHECK-NEXT:   %[[SELECT_1:.*]] = stablehlo.select %arg2, %[[CLAMP]], %[[ADD]] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j], [i, j])->([i, j]) {i=4, j=6}>}
// CHECK-NEXT:   %[[CONVERT:.*]] = stablehlo.convert %[[SELECT_1]] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=6}>}
// CHECK-NEXT:   %[[CONVERT_1:.*]] = stablehlo.convert %[[CONVERT]] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=6}>}
// CHECK-NEXT:   return %[[CONVERT_1]] : tensor<4x6xf32>
// DROP-LABEL: func.func @elementwise(
// DROP-SAME:    %arg0: tensor<4x6xf32>,
// DROP-SAME:    %arg1: tensor<4x6xf32>,
// DROP-SAME:    %arg2: tensor<4x6xi1>,
// DROP-SAME:    %arg3: tensor<f32>)
// DROP-SAME:    -> tensor<4x6xf32> {
// DROP-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %arg1 : tensor<4x6xf32>
// DROP-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ADD]] : tensor<4x6xf32>
// DROP-NEXT:   %[[COMPARE:.*]] = stablehlo.compare LT, %[[ADD]], %[[TANH]] : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
// DROP-NEXT:   %[[SELECT:.*]] = stablehlo.select %[[COMPARE]], %[[ADD]], %[[TANH]] : tensor<4x6xi1>, tensor<4x6xf32>
// DROP-NEXT:   %[[CLAMP:.*]] = stablehlo.clamp %arg3, %[[SELECT]], %arg3 : (tensor<f32>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
// DROP-NEXT:   %[[SELECT_1:.*]] = stablehlo.select %arg2, %[[CLAMP]], %[[ADD]] : tensor<4x6xi1>, tensor<4x6xf32>
// DROP-NEXT:   %[[CONVERT:.*]] = stablehlo.convert %[[SELECT_1]] : (tensor<4x6xf32>) -> tensor<4x6xbf16>
// DROP-NEXT:   %[[CONVERT_1:.*]] = stablehlo.convert %[[CONVERT]] : (tensor<4x6xbf16>) -> tensor<4x6xf32>
// DROP-NEXT:   return %[[CONVERT_1]] : tensor<4x6xf32>
func.func @elementwise(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x6xi1>, %arg3: tensor<f32>) -> tensor<4x6xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<4x6xf32>
  %1 = stablehlo.tanh %0 : tensor<4x6xf32>
  %2 = stablehlo.compare LT, %0, %1 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
  %3 = stablehlo.select %2, %0, %1 : tensor<4x6xi1>, tensor<4x6xf32>
  %4 = stablehlo.clamp %arg3, %3, %arg3 : (tensor<f32>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %5 = stablehlo.select %arg2, %4, %0 : tensor<4x6xi1>, tensor<4x6xf32>
  %6 = stablehlo.convert %5 : (tensor<4x6xf32>) -> tensor<4x6xbf16>
  %7 = stablehlo.convert %6 : (tensor<4x6xbf16>) -> tensor<4x6xf32>
  return %7 : tensor<4x6xf32>
}
