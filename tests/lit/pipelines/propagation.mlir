// RUN: shardy-opt %s -sdy-propagation-pipeline | filecheck %s
// RUN: shardy-opt %s -sdy-propagation-pipeline='avoid-export-for-partitioning=true' | filecheck %s --check-prefix=AVOID
// RUN: shardy-opt %s -sdy-propagation-pipeline='enable-insert-explicit-collectives=true' | filecheck %s --check-prefix=COLLECTIVES
// RUN: shardy-opt %s -sdy-propagation-pipeline='keep-sharding-rules=true' | filecheck %s --check-prefix=RULES
// RUN: shardy-opt %s -sdy-propagation-pipeline='conservative-propagation=true' | filecheck %s
// RUN: shardy-opt %s -sdy-propagation-pipeline='propagation-strategy=basic' | filecheck %s
// RUN: shardy-opt %s -sdy-propagation-pipeline='propagation-strategy=basic-then-aggressive' | filecheck %s
// RUN: shardy-opt %s -sdy-propagation-pipeline='run-op-priority-propagation=false' | filecheck %s --check-prefix=FLAT
// RUN: shardy-opt %s -sdy-propagation-pipeline='debug-sharding-origins=true' | filecheck %s --check-prefix=ORIGINS
// RUN: shardy-opt %s -sdy-propagation-pipeline='debug-propagation-edge-sharding=true' | filecheck %s
// RUN: shardy-opt %s --pass-pipeline='builtin.module(sdy-propagation-pipeline{keep-sharding-rules=true propagation-strategy=aggressive})' | filecheck %s --check-prefix=RULES

// The whole way: a program with some shardings in; out comes one with closed shardings on all values and reshards.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// CHECK-SAME:    %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>},
// CHECK-SAME:    %arg2: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
// CHECK-SAME:    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// CHECK-NEXT:   %[[BROADCAST_IN_DIM:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %[[BROADCAST_IN_DIM]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// CHECK-NEXT:   %[[CONSTANT:.*]] = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} dense<0.000000e+00> : tensor<8x32xf32>
// CHECK-NEXT:   %[[MAXIMUM:.*]] = stablehlo.maximum %[[ADD]], %[[CONSTANT]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %[[MAXIMUM]] <@mesh, [{}, {"a"}]> : tensor<8x32xf32>
// CHECK-NEXT:   return %[[RESHARD]] : tensor<8x32xf32>
// AVOID-LABEL: func.func @main(
// AVOID-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// AVOID-SAME:    %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>},
// AVOID-SAME:    %arg2: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
// AVOID-SAME:    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// AVOID-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// AVOID-NEXT:   %[[BROADCAST_IN_DIM:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// AVOID-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %[[BROADCAST_IN_DIM]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// AVOID-NEXT:   %[[CONSTANT:.*]] = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} dense<0.000000e+00> : tensor<8x32xf32>
// AVOID-NEXT:   %[[MAXIMUM:.*]] = stablehlo.maximum %[[ADD]], %[[CONSTANT]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// AVOID-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[MAXIMUM]] <@mesh, [{}, {"a"}]> : tensor<8x32xf32>
// AVOID-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x32xf32>
// COLLECTIVES-LABEL: func.func @main(
// COLLECTIVES-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// COLLECTIVES-SAME:    %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>},
// COLLECTIVES-SAME:    %arg2: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
// COLLECTIVES-SAME:    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// COLLECTIVES-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// COLLECTIVES-NEXT:   %[[COLLECTIVE_PERMUTE:.*]] = sdy.collective_permute %[[DOT_GENERAL]] out_sharding=<@mesh, [{"b"}, {"a"}]> : tensor<8x32xf32>
// COLLECTIVES-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"b"}, {}] %[[COLLECTIVE_PERMUTE]] out_sharding=<@mesh, [{}, {"a"}]> : tensor<8x32xf32>
// COLLECTIVES-NEXT:   %[[BROADCAST_IN_DIM:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// COLLECTIVES-NEXT:   %[[ADD:.*]] = stablehlo.add %[[ALL_GATHER]], %[[BROADCAST_IN_DIM]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// COLLECTIVES-NEXT:   %[[CONSTANT:.*]] = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} dense<0.000000e+00> : tensor<8x32xf32>
// COLLECTIVES-NEXT:   %[[MAXIMUM:.*]] = stablehlo.maximum %[[ADD]], %[[CONSTANT]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// COLLECTIVES-NEXT:   return %[[MAXIMUM]] : tensor<8x32xf32>
// RULES-LABEL: func.func @main(
// RULES-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// RULES-SAME:    %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>},
// RULES-SAME:    %arg2: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
// RULES-SAME:    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// RULES-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=32, k=16} reduction={k}>}
// RULES-NEXT:   %[[BROADCAST_IN_DIM:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([j])->([i, j]) {i=8, j=32}>}
// RULES-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %[[BROADCAST_IN_DIM]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=32}>}
// RULES-NEXT:   %[[CONSTANT:.*]] = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} dense<0.000000e+00> : tensor<8x32xf32>
// RULES-NEXT:   %[[MAXIMUM:.*]] = stablehlo.maximum %[[ADD]], %[[CONSTANT]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=32}>}
// RULES-NEXT:   %[[RESHARD:.*]] = sdy.reshard %[[MAXIMUM]] <@mesh, [{}, {"a"}]> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=32}>}
// RULES-NEXT:   return %[[RESHARD]] : tensor<8x32xf32>
// FLAT-LABEL: func.func @main(
// FLAT-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// FLAT-SAME:    %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>},
// FLAT-SAME:    %arg2: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>})
// FLAT-SAME:    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// FLAT-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// FLAT-NEXT:   %[[BROADCAST_IN_DIM:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// FLAT-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %[[BROADCAST_IN_DIM]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// FLAT-NEXT:   %[[CONSTANT:.*]] = sdy.constant dense<0.000000e+00> : tensor<8x32xf32>
// FLAT-NEXT:   %[[MAXIMUM:.*]] = stablehlo.maximum %[[ADD]], %[[CONSTANT]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// FLAT-NEXT:   %[[RESHARD:.*]] = sdy.reshard %[[MAXIMUM]] <@mesh, [{}, {"a"}]> : tensor<8x32xf32>
// FLAT-NEXT:   return %[[RESHARD]] : tensor<8x32xf32>
// ORIGINS-LABEL: func.func @main(
// ORIGINS-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// ORIGINS-SAME:    %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>},
// ORIGINS-SAME:    %arg2: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
// ORIGINS-SAME:    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// ORIGINS-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// ORIGINS-NEXT:   %[[BROADCAST_IN_DIM:.*]] = stablehlo.broadcast_in_dim %arg2, dims = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// ORIGINS-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %[[BROADCAST_IN_DIM]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// ORIGINS-NEXT:   %[[CONSTANT:.*]] = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} dense<0.000000e+00> : tensor<8x32xf32>
// ORIGINS-NEXT:   %[[MAXIMUM:.*]] = stablehlo.maximum %[[ADD]], %[[CONSTANT]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// ORIGINS-NEXT:   %[[RESHARD:.*]] = sdy.reshard %[[MAXIMUM]] <@mesh, [{}, {"a"}]> {sdy.sharding_origin_name = "constraint_0"}
// ORIGINS-NEXT:   return %[[RESHARD]] : tensor<8x32xf32>
func.func @main(
    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b", ?}]>}, %arg2: tensor<32xf32>) -> tensor<8x32xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<32xf32>) -> tensor<8x32xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x32xf32>
  %cst = stablehlo.constant dense<0.0> : tensor<8x32xf32>
  %3 = stablehlo.maximum %2, %cst : tensor<8x32xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{}, {"a"}]> : tensor<8x32xf32>
  return %4 : tensor<8x32xf32>
}
