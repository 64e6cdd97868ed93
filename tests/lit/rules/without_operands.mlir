// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-aggressive-propagate='keep-sharding-rules=true' | filecheck %s --check-prefix=KEEP

// Constants and iotas have no operands: they have no rule, and take the shardings that their users give them.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @sources(
// CHECK-SAME:    %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK-SAME:    -> tensor<8x4xf32> {
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<1.000000e+00> : tensor<8x4xf32>
// CHECK-NEXT:   %[[IOTA:.*]] = stablehlo.iota dim = 0 : tensor<8x4xf32>
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[IOTA]], %[[CONSTANT]] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=4}>}
// CHECK-NEXT:   %[[ADD_1:.*]] = stablehlo.add %[[ADD]], %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=4}>}
// CHECK-NEXT:   return %[[ADD_1]] : tensor<8x4xf32>
// KEEP-LABEL: func.func @sources(
// KEEP-SAME:    %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// KEEP-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// KEEP-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>} dense<1.000000e+00> : tensor<8x4xf32>
// KEEP-NEXT:   %[[IOTA:.*]] = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// KEEP-NEXT:   %[[ADD:.*]] = stablehlo.add %[[IOTA]], %[[CONSTANT]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=4}>}
// KEEP-NEXT:   %[[ADD_1:.*]] = stablehlo.add %[[ADD]], %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=4}>}
// KEEP-NEXT:   return %[[ADD_1]] : tensor<8x4xf32>
func.func @sources(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> tensor<8x4xf32> {
  %cst = stablehlo.constant dense<1.0> : tensor<8x4xf32>
  %0 = stablehlo.iota dim = 0 : tensor<8x4xf32>
  %1 = stablehlo.add %0, %cst : tensor<8x4xf32>
  %2 = stablehlo.add %1, %arg0 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
