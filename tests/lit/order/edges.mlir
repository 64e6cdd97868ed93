// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s --check-prefix=AGGR

// A data-flow edge stands for the values that flow into one place, such as the initial value, the argument and the
// yielded value of a loop. A change of a source puts the edge back; a change of the edge puts the users of its targets
// back. Edges are visited at the place where they stand.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @loop_carries_both_ways(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:   %[[CONSTANT_1:.*]] = stablehlo.constant dense<8> : tensor<i32>
// CHECK-NEXT:   %[[CONSTANT_2:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %[[CONSTANT]]) : tensor<8x8xf32>, tensor<i32>
// CHECK-NEXT:   cond {
// CHECK-NEXT:     %[[COMPARE:.*]] = stablehlo.compare LT, %iterArg_2, %[[CONSTANT_1]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:     stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %iterArg_2, %[[CONSTANT_2]] : tensor<i32>
// CHECK-NEXT:     %[[ADD_1:.*]] = stablehlo.add %iterArg, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[ADD_1]], %[[ADD]] : tensor<8x8xf32>, tensor<i32>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 sharding=<@mesh, [{"a", ?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
// AGGR-LABEL: func.func @loop_carries_both_ways(
// AGGR-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>},
// AGGR-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// AGGR-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// AGGR-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0> : tensor<i32>
// AGGR-NEXT:   %[[CONSTANT_1:.*]] = stablehlo.constant dense<8> : tensor<i32>
// AGGR-NEXT:   %[[CONSTANT_2:.*]] = stablehlo.constant dense<1> : tensor<i32>
// AGGR-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %[[CONSTANT]]) : tensor<8x8xf32>, tensor<i32>
// AGGR-NEXT:   cond {
// AGGR-NEXT:     %[[COMPARE:.*]] = stablehlo.compare LT, %iterArg_2, %[[CONSTANT_1]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// AGGR-NEXT:     stablehlo.return %[[COMPARE]] : tensor<i1>
// AGGR-NEXT:   } do {
// AGGR-NEXT:     %[[ADD:.*]] = stablehlo.add %iterArg_2, %[[CONSTANT_2]] : tensor<i32>
// AGGR-NEXT:     %[[ADD_1:.*]] = stablehlo.add %iterArg, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// AGGR-NEXT:     stablehlo.return %[[ADD_1]], %[[ADD]] : tensor<8x8xf32>, tensor<i32>
// AGGR-NEXT:   }
// AGGR-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 sharding=<@mesh, [{"a", ?}, {"b", ?}]> : tensor<8x8xf32>
// AGGR-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// AGGR-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @loop_carries_both_ways(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) -> tensor<8x8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %c_0 = stablehlo.constant dense<8> : tensor<i32>
  %c_1 = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %c) : tensor<8x8xf32>, tensor<i32>
    cond {
    %3 = stablehlo.compare LT, %iterArg_2, %c_0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %4 = stablehlo.add %iterArg_2, %c_1 : tensor<i32>
    %5 = stablehlo.add %iterArg, %arg1 : tensor<8x8xf32>
    stablehlo.return %5, %4 : tensor<8x8xf32>, tensor<i32>
  }
  %1 = sdy.data_flow_edge %0#0 : tensor<8x8xf32>
  %2 = stablehlo.tanh %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// The last op changes %arg1, and with it the value that the body yields, after the visit of the edge. The edge is put
// back, and hands it on to the initial value and to the op behind the loop.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @yielded_value_changes_late(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>},
// CHECK-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-NEXT:   %[[CONSTANT_1:.*]] = stablehlo.constant dense<8> : tensor<i32>
// CHECK-NEXT:   %[[CONSTANT_2:.*]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %[[CONSTANT]]) : tensor<8x8xf32>, tensor<i32>
// CHECK-NEXT:   cond {
// CHECK-NEXT:     %[[COMPARE:.*]] = stablehlo.compare LT, %iterArg_2, %[[CONSTANT_1]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK-NEXT:     stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %iterArg_2, %[[CONSTANT_2]] : tensor<i32>
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[TANH]], %[[ADD]] : tensor<8x8xf32>, tensor<i32>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 sharding=<@mesh, [{?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[TANH_1:.*]] = stablehlo.tanh %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// CHECK-NEXT:   %[[ADD_1:.*]] = stablehlo.add %arg1, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// CHECK-NEXT:   return %[[TANH_1]], %[[ADD_1]] : tensor<8x8xf32>, tensor<8x8xf32>
// AGGR-LABEL: func.func @yielded_value_changes_late(
// AGGR-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>},
// AGGR-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>},
// AGGR-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>})
// AGGR-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) {
// AGGR-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0> : tensor<i32>
// AGGR-NEXT:   %[[CONSTANT_1:.*]] = stablehlo.constant dense<8> : tensor<i32>
// AGGR-NEXT:   %[[CONSTANT_2:.*]] = stablehlo.constant dense<1> : tensor<i32>
// AGGR-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %[[CONSTANT]]) : tensor<8x8xf32>, tensor<i32>
// AGGR-NEXT:   cond {
// AGGR-NEXT:     %[[COMPARE:.*]] = stablehlo.compare LT, %iterArg_2, %[[CONSTANT_1]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// AGGR-NEXT:     stablehlo.return %[[COMPARE]] : tensor<i1>
// AGGR-NEXT:   } do {
// AGGR-NEXT:     %[[ADD:.*]] = stablehlo.add %iterArg_2, %[[CONSTANT_2]] : tensor<i32>
// AGGR-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// AGGR-NEXT:     stablehlo.return %[[TANH]], %[[ADD]] : tensor<8x8xf32>, tensor<i32>
// AGGR-NEXT:   }
// AGGR-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 sharding=<@mesh, [{?}, {"b", ?}]> : tensor<8x8xf32>
// AGGR-NEXT:   %[[TANH_1:.*]] = stablehlo.tanh %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// AGGR-NEXT:   %[[ADD_1:.*]] = stablehlo.add %arg1, %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// AGGR-NEXT:   return %[[TANH_1]], %[[ADD_1]] : tensor<8x8xf32>, tensor<8x8xf32>
func.func @yielded_value_changes_late(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %c_0 = stablehlo.constant dense<8> : tensor<i32>
  %c_1 = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %c) : tensor<8x8xf32>, tensor<i32>
    cond {
    %3 = stablehlo.compare LT, %iterArg_2, %c_0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %4 = stablehlo.add %iterArg_2, %c_1 : tensor<i32>
    %5 = stablehlo.tanh %arg1 : tensor<8x8xf32>
    stablehlo.return %5, %4 : tensor<8x8xf32>, tensor<i32>
  }
  %1 = sdy.data_flow_edge %0#0 : tensor<8x8xf32>
  %2 = stablehlo.tanh %1 : tensor<8x8xf32>
  %9 = stablehlo.add %arg1, %arg2 : tensor<8x8xf32>
  return %2, %9 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// The sharding that the edge has stays, and so do those of the values that flow in: they agree on nothing.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @edge_has_a_sharding(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg2: tensor<i32>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>}) {
// CHECK-NEXT:   %[[CASE:.*]] = "stablehlo.case"(%arg2) ({
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[TANH]] : tensor<8x8xf32>
// CHECK-NEXT:   }, {
// CHECK-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[NEGATE]] : tensor<8x8xf32>
// CHECK-NEXT:   }) : (tensor<i32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[CASE]] sharding=<@mesh, [{"b", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[EXPONENTIAL:.*]] = stablehlo.exponential %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[EXPONENTIAL]] : tensor<8x8xf32>
// AGGR-LABEL: func.func @edge_has_a_sharding(
// AGGR-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// AGGR-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// AGGR-SAME:    %arg2: tensor<i32>)
// AGGR-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>}) {
// AGGR-NEXT:   %[[CASE:.*]] = "stablehlo.case"(%arg2) ({
// AGGR-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// AGGR-NEXT:     stablehlo.return %[[TANH]] : tensor<8x8xf32>
// AGGR-NEXT:   }, {
// AGGR-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// AGGR-NEXT:     stablehlo.return %[[NEGATE]] : tensor<8x8xf32>
// AGGR-NEXT:   }) : (tensor<i32>) -> tensor<8x8xf32>
// AGGR-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[CASE]] sharding=<@mesh, [{"b", ?}, {?}]> : tensor<8x8xf32>
// AGGR-NEXT:   %[[EXPONENTIAL:.*]] = stablehlo.exponential %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", ?}, {?}]>]>}
// AGGR-NEXT:   return %[[EXPONENTIAL]] : tensor<8x8xf32>
func.func @edge_has_a_sharding(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg2: tensor<i32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.case"(%arg2) ({
    %3 = stablehlo.tanh %arg0 : tensor<8x8xf32>
    stablehlo.return %3 : tensor<8x8xf32>
  }, {
    %4 = stablehlo.negate %arg1 : tensor<8x8xf32>
    stablehlo.return %4 : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"b", ?}, {?}]> : tensor<8x8xf32>
  %2 = stablehlo.exponential %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// Both branches are sharded by "a", along different dimensions. Basic propagation gives it nothing; aggressive
// propagation prefers the first branch, which is its first source.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @first_branch_decides(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// CHECK-SAME:    %arg2: tensor<i32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[CASE:.*]] = "stablehlo.case"(%arg2) ({
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[TANH]] : tensor<8x8xf32>
// CHECK-NEXT:   }, {
// CHECK-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[NEGATE]] : tensor<8x8xf32>
// CHECK-NEXT:   }) : (tensor<i32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[CASE]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[EXPONENTIAL:.*]] = stablehlo.exponential %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>
// CHECK-NEXT:   return %[[EXPONENTIAL]] : tensor<8x8xf32>
// AGGR-LABEL: func.func @first_branch_decides(
// AGGR-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// AGGR-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>},
// AGGR-SAME:    %arg2: tensor<i32>)
// AGGR-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// AGGR-NEXT:   %[[CASE:.*]] = "stablehlo.case"(%arg2) ({
// AGGR-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// AGGR-NEXT:     stablehlo.return %[[TANH]] : tensor<8x8xf32>
// AGGR-NEXT:   }, {
// AGGR-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}]>]>}
// AGGR-NEXT:     stablehlo.return %[[NEGATE]] : tensor<8x8xf32>
// AGGR-NEXT:   }) : (tensor<i32>) -> tensor<8x8xf32>
// AGGR-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[CASE]] sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
// AGGR-NEXT:   %[[EXPONENTIAL:.*]] = stablehlo.exponential %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// AGGR-NEXT:   return %[[EXPONENTIAL]] : tensor<8x8xf32>
func.func @first_branch_decides(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}, %arg2: tensor<i32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.case"(%arg2) ({
    %3 = stablehlo.tanh %arg0 : tensor<8x8xf32>
    stablehlo.return %3 : tensor<8x8xf32>
  }, {
    %4 = stablehlo.negate %arg1 : tensor<8x8xf32>
    stablehlo.return %4 : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  %2 = stablehlo.exponential %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
