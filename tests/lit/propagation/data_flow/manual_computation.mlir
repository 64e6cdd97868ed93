// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-op-priority-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-user-priority-propagate | filecheck %s

// In the body of a manual computation tensors are local along its manual axes, which no op in it can use; along free
// axes shardings go in and out. Edges at its arguments and results add and remove the manual axes.

// "b" is free: it goes in, through the body and out.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @free_axis_goes_through(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a", ?}, {?}]>] out_shardings=[<@mesh, [{"a", ?}, {?}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT:     %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}, {"b", ?}]> : tensor<4x8xf32>
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// CHECK-NEXT:     sdy.return %[[TANH]] : tensor<4x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %[[MANUAL_COMPUTATION]] sharding=<@mesh, [{"a", ?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE_1]] : tensor<8x8xf32>
func.func @free_axis_goes_through(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a", ?}, {?}]>] out_shardings=[<@mesh, [{"a", ?}, {?}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
    %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}, {?}]> : tensor<4x8xf32>
    %3 = stablehlo.tanh %2 : tensor<4x8xf32>
    sdy.return %3 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// From a user of the result back to the operand.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @free_axis_goes_back(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a", ?}, {?}]>] out_shardings=[<@mesh, [{"a", ?}, {?}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT:     %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}, {"b", ?}]> : tensor<4x8xf32>
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
// CHECK-NEXT:     sdy.return %[[TANH]] : tensor<4x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %[[MANUAL_COMPUTATION]] sharding=<@mesh, [{"a", ?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE_1]] : tensor<8x8xf32>
func.func @free_axis_goes_back(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a", ?}, {?}]>] out_shardings=[<@mesh, [{"a", ?}, {?}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
    %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{?}, {?}]> : tensor<4x8xf32>
    %3 = stablehlo.tanh %2 : tensor<4x8xf32>
    sdy.return %3 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// "a" is manual: the sharding by it stays outside.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @manual_axis_stays_outside(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {"a", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>}) {
// CHECK-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"b", ?}, {?}], replicated={"a"}>] out_shardings=[<@mesh, [{"b", ?}, {?}], replicated={"a"}>] manual_axes={"a"} (%arg1: tensor<8x8xf32>) {
// CHECK-NEXT:     %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %arg1 sharding=<@mesh, [{"b", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %[[DATA_FLOW_EDGE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", ?}, {?}]>]>}
// CHECK-NEXT:     sdy.return %[[TANH]] : tensor<8x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %[[MANUAL_COMPUTATION]] sharding=<@mesh, [{"b", ?}, {?}], replicated={"a"}> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE_1]] : tensor<8x8xf32>
func.func @manual_axis_stays_outside(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"b", ?}, {?}], replicated={"a"}>] out_shardings=[<@mesh, [{"b", ?}, {?}], replicated={"a"}>] manual_axes={"a"} (%arg1: tensor<8x8xf32>) {
    %2 = sdy.data_flow_edge %arg1 sharding=<@mesh, [{"b", ?}, {?}]> : tensor<8x8xf32>
    %3 = stablehlo.tanh %2 : tensor<8x8xf32>
    sdy.return %3 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"b", ?}, {?}], replicated={"a"}> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
