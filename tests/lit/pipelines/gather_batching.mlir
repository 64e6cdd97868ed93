// RUN: shardy-opt %s -sdy-explicit-gather-scatter-batching | filecheck %s
// RUN: shardy-opt %s -sdy-propagation-pipeline='enable-explicit-gather-scatter-batching=true' | filecheck %s --check-prefix=PIPELINE

// A dimension of indices that counts up, as an iota does, becomes a batching dimension of the gather, along which
// shardings pass through.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<4x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<4x1xi32>)
// CHECK-SAME:    -> tensor<4x8xf32> {
// CHECK-NEXT:   %[[GATHER:.*]] = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 8>}> : (tensor<4x16x8xf32>, tensor<4x1xi32>) -> tensor<4x8xf32>
// CHECK-NEXT:   return %[[GATHER]] : tensor<4x8xf32>
// PIPELINE-LABEL: func.func @main(
// PIPELINE-SAME:    %arg0: tensor<4x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}, {}]>},
// PIPELINE-SAME:    %arg1: tensor<4x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// PIPELINE-SAME:    -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// PIPELINE-NEXT:   %[[GATHER:.*]] = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 8>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// PIPELINE-NEXT:   return %[[GATHER]] : tensor<4x8xf32>
func.func @main(%arg0: tensor<4x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}]>}, %arg1: tensor<4x1xi32>) -> tensor<4x8xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.concatenate %0, %arg1, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %2 = "stablehlo.gather"(%arg0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 8>}> : (tensor<4x16x8xf32>, tensor<4x2xi32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
