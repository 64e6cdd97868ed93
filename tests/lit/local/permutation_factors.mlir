// RUN: shardy-opt %s -sdy-resolve-permutation-factors | filecheck %s
// RUN: shardy-opt %s -sdy-resolve-permutation-factors='enable-halo-exchange=true' | filecheck %s --check-prefix=HALO
// REFERENCE: no, jaxlib reshards to a mesh with its devices in reverse order

// An op that needs elements of a neighbour along a sharded dimension gathers it, or exchanges halos.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[REVERSE:.*]] = stablehlo.reverse %[[RESHARD]], dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
// CHECK-NEXT:   %[[RESHARD_1:.*]] = sdy.reshard %[[REVERSE]] <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[RESHARD_1]] : tensor<8x8xf32>
// HALO-LABEL: func.func @main(
// HALO-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// HALO-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// HALO-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// HALO-NEXT:     %[[COLLECTIVE_PERMUTE:.*]] = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<{{\[\[}}0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
// HALO-NEXT:     %[[REVERSE:.*]] = stablehlo.reverse %[[COLLECTIVE_PERMUTE]], dims = [0] : tensor<4x8xf32>
// HALO-NEXT:     sdy.return %[[REVERSE]] : tensor<4x8xf32>
// HALO-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// HALO-NEXT:   return %[[MANUAL_COMPUTATION]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.reverse %arg0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
