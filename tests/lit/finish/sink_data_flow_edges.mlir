// RUN: shardy-opt %s -sdy-sink-data-flow-edges | filecheck %s
// RUN: shardy-opt %s -sdy-sink-data-flow-edges='sink-debug-sharding-origins=true sink-debug-propagation-edge-sharding=true' | filecheck %s --check-prefix=DEBUG

// The owner of an edge takes over the edge's sharding and its users.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>,
// CHECK-SAME:    %arg1: tensor<i1>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, []>]>}
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg : tensor<8x8xf32>
// CHECK-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %[[WHILE]]#0 : tensor<8x8xf32>
// CHECK-NEXT:   return %[[NEGATE]] : tensor<8x8xf32>
// DEBUG-LABEL: func.func @main(
// DEBUG-SAME:    %arg0: tensor<8x8xf32>,
// DEBUG-SAME:    %arg1: tensor<i1>)
// DEBUG-SAME:    -> tensor<8x8xf32> {
// DEBUG-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1> attributes {sdy.block_arg_propagation_edges = [], sdy.block_arg_sharding_origins = [], sdy.result_propagation_edges = [], sdy.result_sharding_origins = [{a = "input: 0"}], sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, []>]>}
// DEBUG-NEXT:   cond {
// DEBUG-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// DEBUG-NEXT:   } do {
// DEBUG-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg : tensor<8x8xf32>
// DEBUG-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// DEBUG-NEXT:   }
// DEBUG-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %[[WHILE]]#0 : tensor<8x8xf32>
// DEBUG-NEXT:   return %[[NEGATE]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<i1>) -> tensor<8x8xf32> {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
    cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %3 = stablehlo.tanh %iterArg : tensor<8x8xf32>
    stablehlo.return %3, %iterArg_0 : tensor<8x8xf32>, tensor<i1>
  }
  %1 = sdy.data_flow_edge %0#0 sharding=<@mesh, [{"a"}, {}]> {sdy.sharding_origins = {a = "input: 0"}} : tensor<8x8xf32>
  %2 = stablehlo.negate %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
