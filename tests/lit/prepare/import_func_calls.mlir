// RUN: shardy-opt %s -sdy-import-func-calls | filecheck %s
// RUN: shardy-opt %s -sdy-import-func-calls='add-data-flow-edges-on-named-computations=false' | filecheck %s --check-prefix=PLAIN

// A call becomes a named computation with the body of its function. Shardings of the function's arguments and of the
// call's results become those of the computation; edges are added on both unless asked not to.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[NAMED_COMPUTATION:.*]] = sdy.named_computation<"f">(%arg0) in_shardings=[<@mesh, [{?}, {"a"}]>] out_shardings=[<@mesh, [{"a"}, {?}]>] (%arg1: tensor<8x8xf32>) {
// CHECK-NEXT:     %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}, {"a"}]> : tensor<8x8xf32>
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>
// CHECK-NEXT:     sdy.return %[[TANH]] : tensor<8x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %[[NAMED_COMPUTATION]] sharding=<@mesh, [{"a"}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE_1]] : tensor<8x8xf32>
// PLAIN-LABEL: func.func @main(
// PLAIN-SAME:    %arg0: tensor<8x8xf32>)
// PLAIN-SAME:    -> tensor<8x8xf32> {
// PLAIN-NEXT:   %[[NAMED_COMPUTATION:.*]] = sdy.named_computation<"f">(%arg0) in_shardings=[<@mesh, [{?}, {"a"}]>] out_shardings=[<@mesh, [{"a"}, {?}]>] (%arg1: tensor<8x8xf32>) {
// PLAIN-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg1 : tensor<8x8xf32>
// PLAIN-NEXT:     sdy.return %[[TANH]] : tensor<8x8xf32>
// PLAIN-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// PLAIN-NEXT:   return %[[NAMED_COMPUTATION]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func private @f(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
