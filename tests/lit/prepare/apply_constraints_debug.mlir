// RUN: shardy-opt %s -sdy-apply-sharding-constraints='debug-sharding-origins=true' | filecheck %s --check-prefix=ORIGINS
// RUN: shardy-opt %s -sdy-apply-sharding-constraints='debug-propagation-edge-sharding=true' | filecheck %s --check-prefix=EDGES

// On request the pass names the constraint from which an axis comes, and records how it went to the input.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// ORIGINS-LABEL: func.func @main(
// ORIGINS-SAME:    %arg0: tensor<8x8xf32>)
// ORIGINS-SAME:    -> (tensor<8x8xf32> {sdy.sharding_origins = {a = "constraint_0", b = "constraint_0"}}) {
// ORIGINS-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>, sdy.sharding_origins = [{a = "constraint_0", b = "constraint_0"}]}
// ORIGINS-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[TANH]] <@mesh, [{"a"}, {"b"}]> {sdy.sharding_origin_name = "constraint_0", sdy.sharding_origins = {a = "self", b = "self"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// ORIGINS-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
// EDGES-LABEL: func.func @main(
// EDGES-SAME:    %arg0: tensor<8x8xf32>)
// EDGES-SAME:    -> tensor<8x8xf32> {
// EDGES-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// EDGES-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[TANH]] <@mesh, [{"a"}, {"b"}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"a" = result-0 -> [operand-0]}, {"b" = result-0 -> [operand-0]}]}]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// EDGES-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
