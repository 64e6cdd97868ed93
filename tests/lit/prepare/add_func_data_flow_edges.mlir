// RUN: shardy-opt %s -sdy-add-func-data-flow-edges | filecheck %s

// Arguments of functions that are called, and results of calls, get edges; the main function's arguments do not.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[CALL:.*]] = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[FUNC_DATA_FLOW_EDGE:.*]] = sdy.func_data_flow_edge %[[CALL]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %[[FUNC_DATA_FLOW_EDGE]] : tensor<8x8xf32>
// CHECK-NEXT:   return %[[NEGATE]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func private @f(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[FUNC_DATA_FLOW_EDGE:.*]] = sdy.func_data_flow_edge %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>}
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[FUNC_DATA_FLOW_EDGE]] : tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func private @f(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
