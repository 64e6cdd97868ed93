// RUN: shardy-opt %s -sdy-add-data-flow-edges | filecheck %s

// Each value that an op carries gets an edge behind its owner: results of loops and conditionals and barriers, and
// arguments of bodies. All users of the owner use the edge instead.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>,
// CHECK-SAME:    %arg1: tensor<i1>,
// CHECK-SAME:    %arg2: tensor<i32>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg : tensor<8x8xf32>
// CHECK-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 : tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %[[WHILE]]#1 : tensor<i1>
// CHECK-NEXT:   %[[CASE:.*]] = "stablehlo.case"(%arg2) ({
// CHECK-NEXT:     stablehlo.return %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   }, {
// CHECK-NEXT:     stablehlo.return %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>
// CHECK-NEXT:   }) : (tensor<i32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_2:.*]] = sdy.data_flow_edge %[[CASE]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[OPTIMIZATION_BARRIER:.*]] = stablehlo.optimization_barrier %[[DATA_FLOW_EDGE_2]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_3:.*]] = sdy.data_flow_edge %[[OPTIMIZATION_BARRIER]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%[[DATA_FLOW_EDGE_3]]) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg3: tensor<4x8xf32>) {
// CHECK-NEXT:     %[[DATA_FLOW_EDGE_4:.*]] = sdy.data_flow_edge %arg3 sharding=<@mesh, [{}, {}]> : tensor<4x8xf32>
// CHECK-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %[[DATA_FLOW_EDGE_4]] : tensor<4x8xf32>
// CHECK-NEXT:     sdy.return %[[NEGATE]] : tensor<4x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_5:.*]] = sdy.data_flow_edge %[[MANUAL_COMPUTATION]] sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE]], %[[DATA_FLOW_EDGE_3]], %[[DATA_FLOW_EDGE_5]] : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<i1>, %arg2: tensor<i32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
    cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %2 = stablehlo.tanh %iterArg : tensor<8x8xf32>
    stablehlo.return %2, %iterArg_0 : tensor<8x8xf32>, tensor<i1>
  }
  %1 = "stablehlo.case"(%arg2) ({
    stablehlo.return %arg0 : tensor<8x8xf32>
  }, {
    stablehlo.return %0#0 : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>
  %3 = stablehlo.optimization_barrier %1 : tensor<8x8xf32>
  %4 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg3: tensor<4x8xf32>) {
    %5 = stablehlo.negate %arg3 : tensor<4x8xf32>
    sdy.return %5 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0#0, %3, %4 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
