// RUN: shardy-opt %s -sdy-export-pipeline | filecheck %s
// RUN: shardy-opt %s -sdy-export-pipeline='avoid-export-for-partitioning=true' | filecheck %s --check-prefix=AVOID
// RUN: shardy-opt %s -sdy-export-pipeline='enable-insert-explicit-collectives=true' | filecheck %s --check-prefix=COLLECTIVES
// RUN: shardy-opt %s -sdy-export-pipeline='keep-sharding-rules=true' | filecheck %s --check-prefix=RULES
// RUN: shardy-opt %s -sdy-export-pipeline='enable-insert-explicit-collectives=true remove-all-gather-reduce-scatter-for-cmv1=true' | filecheck %s --check-prefix=CMV1

// RUN: shardy-opt %s -sdy-export-pipeline='update-non-divisible-input-output-shardings=false' | filecheck %s
// RUN: shardy-opt %s -sdy-export-pipeline='dump-sharding-origins=true dump-propagation-edges=true' | filecheck %s
// RUN: shardy-opt %s -sdy-export-pipeline='avoid-reshards-on-calls=true' | filecheck %s

// Finishing: edges and groups go, constraints become reshards, shardings are closed, reshards or collectives are put
// in.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// CHECK-SAME:    %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
// CHECK-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %[[DOT_GENERAL]] <@mesh, [{}, {"b"}]> : tensor<8x4xf32>
// CHECK-NEXT:   return %[[RESHARD]] : tensor<8x4xf32>
// AVOID-LABEL: func.func @main(
// AVOID-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// AVOID-SAME:    %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
// AVOID-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// AVOID-NEXT:   sdy.sharding_group %arg0 group_id=0 : tensor<8x16xf32>
// AVOID-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// AVOID-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %[[DOT_GENERAL]] <@mesh, [{}, {"b"}]> : tensor<8x4xf32>
// AVOID-NEXT:   return %[[SHARDING_CONSTRAINT]] : tensor<8x4xf32>
// COLLECTIVES-LABEL: func.func @main(
// COLLECTIVES-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// COLLECTIVES-SAME:    %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
// COLLECTIVES-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// COLLECTIVES-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{}, {"a"}] %arg1 out_sharding=<@mesh, [{}, {}]> : tensor<16x4xf32>
// COLLECTIVES-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %[[ALL_GATHER]], contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// COLLECTIVES-NEXT:   %[[ALL_TO_ALL:.*]] = sdy.all_to_all [{"a"}: 0->1] %[[DOT_GENERAL]] out_sharding=<@mesh, [{}, {"a"}]> : tensor<8x4xf32>
// COLLECTIVES-NEXT:   return %[[ALL_TO_ALL]] : tensor<8x4xf32>
// RULES-LABEL: func.func @main(
// RULES-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// RULES-SAME:    %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
// RULES-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// RULES-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>}
// RULES-NEXT:   %[[RESHARD:.*]] = sdy.reshard %[[DOT_GENERAL]] <@mesh, [{}, {"b"}]> : tensor<8x4xf32>
// RULES-NEXT:   return %[[RESHARD]] : tensor<8x4xf32>
// CMV1-LABEL: func.func @main(
// CMV1-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// CMV1-SAME:    %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
// CMV1-SAME:    -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
// CMV1-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CMV1-NEXT:   %[[ALL_TO_ALL:.*]] = sdy.all_to_all [{"a"}: 0->1] %[[DOT_GENERAL]] out_sharding=<@mesh, [{}, {"a"}]> : tensor<8x4xf32>
// CMV1-NEXT:   return %[[ALL_TO_ALL]] : tensor<8x4xf32>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}]>}) {
  sdy.sharding_group %arg0 group_id=0 : tensor<8x16xf32>
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>, sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {"b"}]> : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
