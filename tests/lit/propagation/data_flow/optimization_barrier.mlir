// RUN: shardy-opt %s -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -sdy-op-priority-propagate | filecheck %s
// RUN: shardy-opt %s -sdy-user-priority-propagate | filecheck %s

// An optimization barrier hands each operand to the result of the same index, tied by an edge.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @both_ways(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>}) {
// CHECK-NEXT:   %[[OPTIMIZATION_BARRIER:.*]]:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<8x8xf32>, tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[OPTIMIZATION_BARRIER]]#0 sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %[[OPTIMIZATION_BARRIER]]#1 sharding=<@mesh, [{"b", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE]], %[[DATA_FLOW_EDGE_1]] : tensor<8x8xf32>, tensor<8x8xf32>
func.func @both_ways(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>}) {
  %0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<8x8xf32>, tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0#0 : tensor<8x8xf32>
  %2 = sdy.data_flow_edge %0#1 : tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}
