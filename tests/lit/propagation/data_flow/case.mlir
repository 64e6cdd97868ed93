// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-op-priority-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-user-priority-propagate | filecheck %s

// The sources of the edge of a conditional are the values that its branches yield.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @from_one_branch(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg2: tensor<i32>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[CASE:.*]] = "stablehlo.case"(%arg2) ({
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[TANH]] : tensor<8x8xf32>
// CHECK-NEXT:   }, {
// CHECK-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[NEGATE]] : tensor<8x8xf32>
// CHECK-NEXT:   }) : (tensor<i32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[CASE]] sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>
func.func @from_one_branch(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32>, %arg2: tensor<i32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.case"(%arg2) ({
    %2 = stablehlo.tanh %arg0 : tensor<8x8xf32>
    stablehlo.return %2 : tensor<8x8xf32>
  }, {
    %3 = stablehlo.negate %arg1 : tensor<8x8xf32>
    stablehlo.return %3 : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @from_the_result(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>},
// CHECK-SAME:    %arg2: tensor<i32>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[CASE:.*]] = "stablehlo.case"(%arg2) ({
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[TANH]] : tensor<8x8xf32>
// CHECK-NEXT:   }, {
// CHECK-NEXT:     %[[TRANSPOSE:.*]] = stablehlo.transpose %arg1, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[TRANSPOSE]] : tensor<8x8xf32>
// CHECK-NEXT:   }) : (tensor<i32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[CASE]] sharding=<@mesh, [{?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>
func.func @from_the_result(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>, %arg2: tensor<i32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) {
  %0 = "stablehlo.case"(%arg2) ({
    %2 = stablehlo.tanh %arg0 : tensor<8x8xf32>
    stablehlo.return %2 : tensor<8x8xf32>
  }, {
    %3 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %3 : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Branches that agree on "a", and differ behind it.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>

// CHECK-LABEL: func.func @branches_agree_on_major_axes(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "c", ?}, {?}]>},
// CHECK-SAME:    %arg2: tensor<i32>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[CASE:.*]] = "stablehlo.case"(%arg2) ({
// CHECK-NEXT:     stablehlo.return %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   }, {
// CHECK-NEXT:     stablehlo.return %arg1 : tensor<8x8xf32>
// CHECK-NEXT:   }) : (tensor<i32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[CASE]] sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>
func.func @branches_agree_on_major_axes(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "c", ?}, {?}]>}, %arg2: tensor<i32>) -> tensor<8x8xf32> {
  %0 = "stablehlo.case"(%arg2) ({
    stablehlo.return %arg0 : tensor<8x8xf32>
  }, {
    stablehlo.return %arg1 : tensor<8x8xf32>
  }) : (tensor<i32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
