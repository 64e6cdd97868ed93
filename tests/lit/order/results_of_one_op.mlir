// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s

// The results of an op share one attribute: where one of them gets a sharding, the others get an open one, which
// counts as theirs from then on.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @other_results_become_open(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[SORT:.*]]:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 1 : i64}> ({
// CHECK-NEXT:   ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<i32>, %arg6: tensor<i32>):
// CHECK-NEXT:     %[[COMPARE:.*]] = stablehlo.compare LT, %arg3, %arg4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT:     stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT:   }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>, <@mesh, [{"a", ?}, {?}]>]>} : (tensor<8x8xf32>, tensor<8x8xi32>) -> (tensor<8x8xf32>, tensor<8x8xi32>)
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[SORT]]#0, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[ADD]], %[[SORT]]#1 : tensor<8x8xf32>, tensor<8x8xi32>
func.func @other_results_become_open(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xi32>, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x8xi32>) {
  %0:2 = "stablehlo.sort"(%arg0, %arg1) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %3 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xi32>) -> (tensor<8x8xf32>, tensor<8x8xi32>)
  %1 = stablehlo.add %0#0, %arg2 : tensor<8x8xf32>
  return %1, %0#1 : tensor<8x8xf32>, tensor<8x8xi32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @custom_call_without_rule(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, tensor<8x4x2xf32>) {
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]]:2 = stablehlo.custom_call @unknown(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>, <@mesh, [{?}, {?}, {?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[CUSTOM_CALL]]#0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[ADD]], %[[CUSTOM_CALL]]#1 : tensor<8x8xf32>, tensor<8x4x2xf32>
func.func @custom_call_without_rule(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> (tensor<8x8xf32>, tensor<8x4x2xf32>) {
  %0:2 = stablehlo.custom_call @unknown(%arg0) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x4x2xf32>)
  %1 = stablehlo.add %0#0, %arg1 : tensor<8x8xf32>
  return %1, %0#1 : tensor<8x8xf32>, tensor<8x4x2xf32>
}
