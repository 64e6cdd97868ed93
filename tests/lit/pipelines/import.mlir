// RUN: shardy-opt %s -sdy-import-pipeline | filecheck %s
// RUN: shardy-opt %s -sdy-import-pipeline='dedup-functions-fully=true' | filecheck %s --check-prefix=FULLY
// RUN: shardy-opt %s -sdy-import-pipeline='enable-explicit-gather-scatter-batching=true' | filecheck %s

// Preparation: meshes are lifted, axes of size 1 go, constants are copied per use, edges added, unused functions gone.

sdy.mesh @mesh = <["a"=2, "one"=1]>

// CHECK: sdy.mesh @mesh = <["a"=2, "one"=1]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}, {name = "one", size = 1 : i64}]}}
// CHECK: sdy.mesh @mesh_0 = <["z"=2]> {stablehlo.mesh = {axes = [{name = "z", size = 2 : i64}]}}
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{"z", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// CHECK-SAME:    %arg2: tensor<i1>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[CONSTANT:.*]] = sdy.constant dense<1.000000e+00> : tensor<8x8xf32>
// CHECK-NEXT:   %[[CONSTANT_1:.*]] = sdy.constant dense<1.000000e+00> : tensor<8x8xf32>
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %[[CONSTANT]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[ADD_1:.*]] = stablehlo.add %arg1, %[[CONSTANT_1]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %[[ADD_1]], %iterArg_0 = %arg2) : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[CALL:.*]] = func.call @f(%iterArg) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>}
// CHECK-NEXT:     stablehlo.return %[[CALL]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 : tensor<8x8xf32>
// CHECK-NEXT:   %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %[[WHILE]]#1 : tensor<i1>
// CHECK-NEXT:   return %[[ADD]], %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>, tensor<8x8xf32>
// CHECK-LABEL: func.func private @f(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) {
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
// FULLY: sdy.mesh @mesh = <["a"=2, "one"=1]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}, {name = "one", size = 1 : i64}]}}
// FULLY: sdy.mesh @mesh_0 = <["z"=2]> {stablehlo.mesh = {axes = [{name = "z", size = 2 : i64}]}}
// FULLY-LABEL: func.func @main(
// FULLY-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{"z", ?}, {?}]>},
// FULLY-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// FULLY-SAME:    %arg2: tensor<i1>)
// FULLY-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
// FULLY-NEXT:   %[[CONSTANT:.*]] = sdy.constant dense<1.000000e+00> : tensor<8x8xf32>
// FULLY-NEXT:   %[[CONSTANT_1:.*]] = sdy.constant dense<1.000000e+00> : tensor<8x8xf32>
// FULLY-NEXT:   %[[ADD:.*]] = stablehlo.add %arg0, %[[CONSTANT]] : tensor<8x8xf32>
// FULLY-NEXT:   %[[ADD_1:.*]] = stablehlo.add %arg1, %[[CONSTANT_1]] : tensor<8x8xf32>
// FULLY-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %[[ADD_1]], %iterArg_0 = %arg2) : tensor<8x8xf32>, tensor<i1>
// FULLY-NEXT:   cond {
// FULLY-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// FULLY-NEXT:   } do {
// FULLY-NEXT:     %[[CALL:.*]] = func.call @f(%iterArg) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>}
// FULLY-NEXT:     stablehlo.return %[[CALL]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// FULLY-NEXT:   }
// FULLY-NEXT:   %[[DATA_FLOW_EDGE:.*]] = sdy.data_flow_edge %[[WHILE]]#0 : tensor<8x8xf32>
// FULLY-NEXT:   %[[DATA_FLOW_EDGE_1:.*]] = sdy.data_flow_edge %[[WHILE]]#1 : tensor<i1>
// FULLY-NEXT:   return %[[ADD]], %[[DATA_FLOW_EDGE]] : tensor<8x8xf32>, tensor<8x8xf32>
// FULLY-LABEL: func.func private @f(
// FULLY-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// FULLY-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) {
// FULLY-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>}
// FULLY-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=2]>, [{"z", ?}, {?}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "one"}, {}]>}, %arg2: tensor<i1>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %cst = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %0 = stablehlo.add %arg0, %cst : tensor<8x8xf32>
  %1 = stablehlo.add %arg1, %cst : tensor<8x8xf32>
  %2:2 = stablehlo.while(%iterArg = %1, %iterArg_0 = %arg2) : tensor<8x8xf32>, tensor<i1>
    cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %4 = func.call @f(%iterArg) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %4, %iterArg_0 : tensor<8x8xf32>, tensor<i1>
  }
  return %0, %2#0 : tensor<8x8xf32>, tensor<8x8xf32>
}

func.func private @f(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func private @unused(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}
