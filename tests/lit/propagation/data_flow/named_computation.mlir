// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-op-priority-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-user-priority-propagate | filecheck %s

// A named computation has edges at its arguments and at its results, with shardings of their own.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @through_the_computation(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[NAMED_COMPUTATION:.*]] = sdy.named_computation<"f">(%arg0, %arg1) (%arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32>) {
// CHECK-NEXT:     %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %arg2 sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:     %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %arg3 sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %[[DATA_FLOW_EDGE]], %[[DATA_FLOW_EDGE_1]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:     sdy.return %[[ADD]] : tensor<8x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_2:.*]] = sdy.data_flow_edge %[[NAMED_COMPUTATION]] sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE_2]] : tensor<8x8xf32>
func.func @through_the_computation(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.named_computation<"f">(%arg0, %arg1) (%arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32>) {
    %2 = sdy.data_flow_edge %arg2 : tensor<8x8xf32>
    %3 = sdy.data_flow_edge %arg3 : tensor<8x8xf32>
    %4 = stablehlo.add %2, %3 : tensor<8x8xf32>
    sdy.return %4 : tensor<8x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @shardings_of_the_computation(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[NAMED_COMPUTATION:.*]] = sdy.named_computation<"f">(%arg0, %arg1) in_shardings=[<@mesh, [{"a", ?}, {?}]>, <@mesh, [{?}, {"b"}]>] out_shardings=[<@mesh, [{}, {?}]>] (%arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32>) {
// CHECK-NEXT:     %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %arg2 sharding=<@mesh, [{"a", ?}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:     %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %arg3 sharding=<@mesh, [{"a", ?}, {"b"}]> : tensor<8x8xf32>
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %[[DATA_FLOW_EDGE]], %[[DATA_FLOW_EDGE_1]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:     sdy.return %[[ADD]] : tensor<8x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_2:.*]] = sdy.data_flow_edge %[[NAMED_COMPUTATION]] sharding=<@mesh, [{}, {"b", ?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[DATA_FLOW_EDGE_2]] : tensor<8x8xf32>
func.func @shardings_of_the_computation(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.named_computation<"f">(%arg0, %arg1) in_shardings=[<@mesh, [{"a", ?}, {?}]>, <@mesh, [{?}, {"b"}]>] out_shardings=[<@mesh, [{}, {?}]>] (%arg2: tensor<8x8xf32>, %arg3: tensor<8x8xf32>) {
    %2 = sdy.data_flow_edge %arg2 sharding=<@mesh, [{"a", ?}, {?}]> : tensor<8x8xf32>
    %3 = sdy.data_flow_edge %arg3 sharding=<@mesh, [{?}, {"b"}]> : tensor<8x8xf32>
    %4 = stablehlo.add %2, %3 : tensor<8x8xf32>
    sdy.return %4 : tensor<8x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{}, {?}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
