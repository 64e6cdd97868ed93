// RUN: shardy-opt %s -sdy-user-priority-propagate='debug-sharding-origins=true' | filecheck %s
// RUN: shardy-opt %s -sdy-user-priority-propagate='debug-propagation-edge-sharding=true' | filecheck %s --check-prefix=EDGES
// RUN: shardy-opt %s -sdy-basic-propagate='debug-sharding-origins=true debug-propagation-edge-sharding=true' | filecheck %s --check-prefix=BOTH
// RUN: shardy-opt %s -sdy-aggressive-propagate='debug-sharding-origins=true debug-propagation-edge-sharding=true' | filecheck %s --check-prefix=BOTH
// RUN: shardy-opt %s -sdy-op-priority-propagate='debug-sharding-origins=true debug-propagation-edge-sharding=true' | filecheck %s --check-prefix=BOTH
// RUN: shardy-opt %s -sdy-user-priority-propagate='debug-sharding-origins=true debug-propagation-edge-sharding=true' -sdy-remove-propagation-debug-info | filecheck %s --check-prefix=NONE

// Propagation records on request from which annotation each axis comes, and along which factor of which op it went.
// A pass removes both again.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @record(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>, sdy.sharding_origins = {a = "self", b = "input: 1"}},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>, sdy.sharding_origins = {a = "input: 0", b = "self"}})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>, sdy.sharding_origins = {a = "input: 0", b = "input: 1"}}) {
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>, sdy.sharding_origins = [{a = "input: 0", b = "input: 1"}]}
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ADD]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>, sdy.sharding_origins = [{a = "input: 0", b = "input: 1"}]}
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
// EDGES-LABEL: func.func @record(
// EDGES-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>},
// EDGES-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// EDGES-SAME:    -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-2 = [{"a" = operand-0 -> [result-0]}, {"b" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// EDGES-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %arg1 {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [operand-1, result-0]}, {"b" = operand-1 -> [operand-0, result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// EDGES-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ADD]] {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"a" = operand-0 -> [result-0]}, {"b" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// EDGES-NEXT:   return %[[TANH]] : tensor<8x8xf32>
// BOTH-LABEL: func.func @record(
// BOTH-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>, sdy.sharding_origins = {a = "self", b = "input: 1"}},
// BOTH-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>, sdy.sharding_origins = {a = "input: 0", b = "self"}})
// BOTH-SAME:    -> (tensor<8x8xf32> {sdy.propagation_edges = #sdy.propagation_edges<[{step-2 = [{"a" = operand-0 -> [result-0]}, {"b" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>, sdy.sharding_origins = {a = "input: 0", b = "input: 1"}}) {
// BOTH-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %arg1 {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [operand-1, result-0]}, {"b" = operand-1 -> [operand-0, result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>, sdy.sharding_origins = [{a = "input: 0", b = "input: 1"}]}
// BOTH-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ADD]] {sdy.propagation_edges = #sdy.propagation_edges<[{step-1 = [{"a" = operand-0 -> [result-0]}, {"b" = operand-0 -> [result-0]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>, sdy.sharding_origins = [{a = "input: 0", b = "input: 1"}]}
// BOTH-NEXT:   return %[[TANH]] : tensor<8x8xf32>
// NONE-LABEL: func.func @record(
// NONE-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>},
// NONE-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// NONE-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// NONE-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// NONE-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ADD]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// NONE-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @record(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
