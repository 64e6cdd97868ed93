// RUN: shardy-opt %s -sdy-per-instruction-partitioning='filter=stablehlo.tanh' | filecheck %s
// RUN: shardy-opt %s -sdy-per-instruction-partitioning='enable-halo-exchange=true replica-count=1 partition-count=2' | filecheck %s --check-prefix=HALO
// RUN: shardy-opt %s -sdy-resolve-permutation-factors='enable-halo-exchange=true replica-count=2 partition-count=1' | filecheck %s --check-prefix=REPLICAS
// REFERENCE: no, jaxlib registers no pass sdy-per-instruction-partitioning

// A filter chooses the ops; devices exchange what an op needs of their neighbours, by channels where they are
// partitions, and without where they are replicas.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg1 : tensor<4x8xf32>
// CHECK-NEXT:     sdy.return %[[TANH]] : tensor<4x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[REVERSE:.*]] = stablehlo.reverse %[[MANUAL_COMPUTATION]], dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   return %[[REVERSE]] : tensor<8x8xf32>
// HALO-LABEL: func.func @main(
// HALO-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// HALO-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// HALO-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// HALO-NEXT:     %[[TANH:.*]] = stablehlo.tanh %arg1 : tensor<4x8xf32>
// HALO-NEXT:     sdy.return %[[TANH]] : tensor<4x8xf32>
// HALO-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// HALO-NEXT:   %[[MANUAL_COMPUTATION_1:.*]] = sdy.manual_computation(%[[MANUAL_COMPUTATION]]) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// HALO-NEXT:     %[[COLLECTIVE_PERMUTE:.*]] = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
// HALO-NEXT:     %[[REVERSE:.*]] = stablehlo.reverse %[[COLLECTIVE_PERMUTE]], dims = [0] : tensor<4x8xf32>
// HALO-NEXT:     sdy.return %[[REVERSE]] : tensor<4x8xf32>
// HALO-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// HALO-NEXT:   return %[[MANUAL_COMPUTATION_1]] : tensor<8x8xf32>
// REPLICAS-LABEL: func.func @main(
// REPLICAS-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// REPLICAS-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// REPLICAS-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// REPLICAS-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%[[TANH]]) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// REPLICAS-NEXT:     %[[COLLECTIVE_PERMUTE:.*]] = "stablehlo.collective_permute"(%arg1) <{source_target_pairs = dense<{{\[\[}}0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
// REPLICAS-NEXT:     %[[REVERSE:.*]] = stablehlo.reverse %[[COLLECTIVE_PERMUTE]], dims = [0] : tensor<4x8xf32>
// REPLICAS-NEXT:     sdy.return %[[REVERSE]] : tensor<4x8xf32>
// REPLICAS-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// REPLICAS-NEXT:   return %[[MANUAL_COMPUTATION]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<8x8xf32>
  %1 = stablehlo.reverse %0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
