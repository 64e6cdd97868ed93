// RUN: shardy-opt %s -sdy-import-pipeline='dedup-functions-fully=true debug-sharding-origins=true' | filecheck %s --check-prefix=ORIGINS
// RUN: shardy-opt %s -sdy-import-pipeline='dedup-functions-fully=true debug-propagation-edge-sharding=true' | filecheck %s --check-prefix=EDGES

// Where constraints are applied by the pipeline itself, it records on request where axes come from and how they went.

sdy.mesh @mesh = <["a"=2]>

// ORIGINS-LABEL: func.func @main(
// ORIGINS-SAME:    %arg0: tensor<8x8xf32>)
// ORIGINS-SAME:    -> (tensor<8x8xf32> {sdy.sharding_origins = {a = "constraint_0"}}) {
// ORIGINS-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>, sdy.sharding_origins = [{a = "constraint_0"}]}
// ORIGINS-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[TANH]] <@mesh, [{"a"}, {}]> {sdy.sharding_origin_name = "constraint_0", sdy.sharding_origins = {a = "self"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// ORIGINS-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
// EDGES-LABEL: func.func @main(
// EDGES-SAME:    %arg0: tensor<8x8xf32>)
// EDGES-SAME:    -> tensor<8x8xf32> {
// EDGES-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// EDGES-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[TANH]] <@mesh, [{"a"}, {}]> {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"a" = result-0 -> [operand-0]}]}]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// EDGES-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
