// REFERENCE: no, the option gather-unsupported-ops is our own
// RUN: shardy-opt %s -sdy-convert-global-to-local='gather-unsupported-ops=true' | filecheck %s --check-prefix=GATHER

// An op without a local form runs on gathered operands if asked to.

sdy.mesh @mesh = <["a"=2]>

// GATHER-LABEL: func.func @main(
// GATHER-SAME:    %arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// GATHER-SAME:    -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// GATHER-NEXT:   %[[ALL_GATHER:.*]] = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
// GATHER-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @unknown(%[[ALL_GATHER]]) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// GATHER-NEXT:   %[[PARTITION_ID:.*]] = stablehlo.partition_id : tensor<ui32>
// GATHER-NEXT:   %[[CONVERT:.*]] = stablehlo.convert %[[PARTITION_ID]] : (tensor<ui32>) -> tensor<i64>
// GATHER-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<[0, 4]> : tensor<2xi64>
// GATHER-NEXT:   %[[DYNAMIC_SLICE:.*]] = stablehlo.dynamic_slice %[[CONSTANT]], %[[CONVERT]], sizes = [1] : (tensor<2xi64>, tensor<i64>) -> tensor<1xi64>
// GATHER-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %[[DYNAMIC_SLICE]] : (tensor<1xi64>) -> tensor<i64>
// GATHER-NEXT:   %[[CONSTANT_1:.*]] = stablehlo.constant dense<0> : tensor<i64>
// GATHER-NEXT:   %[[DYNAMIC_SLICE_1:.*]] = stablehlo.dynamic_slice %[[CUSTOM_CALL]], %[[RESHAPE]], %[[CONSTANT_1]], sizes = [4, 8] : (tensor<8x8xf32>, tensor<i64>, tensor<i64>) -> tensor<4x8xf32>
// GATHER-NEXT:   return %[[DYNAMIC_SLICE_1]] : tensor<4x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.custom_call @unknown(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
