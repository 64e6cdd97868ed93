// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-op-priority-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-user-priority-propagate | filecheck %s

// What a loop carries has one sharding: the initial value, the argument of both regions, the yielded value and the
// result are tied by an edge at the result.

// From the initial value to the body and the result.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @from_the_initial_value(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<i1>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>
func.func @from_the_initial_value(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<i1>) -> tensor<8x8xf32> {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
    cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %2 = stablehlo.tanh %iterArg : tensor<8x8xf32>
    stablehlo.return %2, %iterArg_0 : tensor<8x8xf32>, tensor<i1>
  }
  %1 = sdy.data_flow_edge %0#0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// From the body outward, to the initial value and the result.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @from_the_body(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>},
// CHECK-SAME:    %arg1: tensor<i1>,
// CHECK-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %iterArg, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[ADD]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 sharding=<@mesh, [{?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>
func.func @from_the_body(%arg0: tensor<8x8xf32>, %arg1: tensor<i1>, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) -> tensor<8x8xf32> {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
    cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %2 = stablehlo.add %iterArg, %arg2 : tensor<8x8xf32>
    stablehlo.return %2, %iterArg_0 : tensor<8x8xf32>, tensor<i1>
  }
  %1 = sdy.data_flow_edge %0#0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// From a user of the result into the loop.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @from_a_user(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>},
// CHECK-SAME:    %arg1: tensor<i1>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 sharding=<@mesh, [{"a", ?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   return %[[NEGATE]] : tensor<8x8xf32>
func.func @from_a_user(%arg0: tensor<8x8xf32>, %arg1: tensor<i1>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
    cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %2 = stablehlo.tanh %iterArg : tensor<8x8xf32>
    stablehlo.return %2, %iterArg_0 : tensor<8x8xf32>, tensor<i1>
  }
  %1 = sdy.data_flow_edge %0#0 : tensor<8x8xf32>
  %3 = stablehlo.negate %1 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// Two values are carried; their edges are apart. The sum in the body brings them together.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @two_carried_values(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>},
// CHECK-SAME:    %arg2: tensor<i1>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[WHILE:.*]]:3 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1, %iterArg_1 = %arg2) : tensor<8x8xf32>, tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_1 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %iterArg, %iterArg_0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg_0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[ADD]], %[[TANH]], %iterArg_1 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 sharding=<@mesh, [{"a", ?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %[[WHILE]]#1 sharding=<@mesh, [{"a", ?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE]], %[[DATA_FLOW_EDGE_1]] : tensor<8x8xf32>, tensor<8x8xf32>
func.func @two_carried_values(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}, %arg2: tensor<i1>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0:3 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1, %iterArg_1 = %arg2) : tensor<8x8xf32>, tensor<8x8xf32>, tensor<i1>
    cond {
    stablehlo.return %iterArg_1 : tensor<i1>
  } do {
    %3 = stablehlo.add %iterArg, %iterArg_0 : tensor<8x8xf32>
    %4 = stablehlo.tanh %iterArg_0 : tensor<8x8xf32>
    stablehlo.return %3, %4, %iterArg_1 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<i1>
  }
  %1 = sdy.data_flow_edge %0#0 : tensor<8x8xf32>
  %2 = sdy.data_flow_edge %0#1 : tensor<8x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Without an edge nothing flows through the loop.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @without_an_edge(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<i1>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg : tensor<8x8xf32>
// CHECK-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   return %[[WHILE]]#0 : tensor<8x8xf32>
func.func @without_an_edge(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<i1>) -> tensor<8x8xf32> {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
    cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %2 = stablehlo.tanh %iterArg : tensor<8x8xf32>
    stablehlo.return %2, %iterArg_0 : tensor<8x8xf32>, tensor<i1>
  }
  return %0#0 : tensor<8x8xf32>
}
