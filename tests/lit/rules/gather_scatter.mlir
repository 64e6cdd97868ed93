// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s

// A gather has pass-through factors for what it copies whole and for the indices; the dimension that is looked up has
// a factor of its own. A scatter has the same, with its updates in the place of the result.

// CHECK-LABEL: func.func @lookups(
// CHECK-SAME:    %arg0: tensor<16x8xf32>,
// CHECK-SAME:    %arg1: tensor<4x1xi32>,
// CHECK-SAME:    %arg2: tensor<4x8xf32>)
// CHECK-SAME:    -> (tensor<4x8xf32>, tensor<16x8xf32>) {
// CHECK-NEXT:   %[[GATHER:.*]] = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> {sdy.sharding_rule = #sdy.op_sharding_rule<([k, j], [i, l])->([i, j]) {i=4, j=8, k=16, l=1} reduction={k} need_replication={l}>}
// CHECK-NEXT:   %[[SCATTER:.*]] = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
// CHECK-NEXT:   ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %arg3, %arg4 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CHECK-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// CHECK-NEXT:   }) {sdy.sharding_rule = #sdy.op_sharding_rule<([k, j], [i, l], [i, j])->([k, j]) {i=4, j=8, k=16, l=1} reduction={i} need_replication={l}>} : (tensor<16x8xf32>, tensor<4x1xi32>, tensor<4x8xf32>) -> tensor<16x8xf32>
// CHECK-NEXT:   return %[[GATHER]], %[[SCATTER]] : tensor<4x8xf32>, tensor<16x8xf32>
func.func @lookups(%arg0: tensor<16x8xf32>, %arg1: tensor<4x1xi32>, %arg2: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<16x8xf32>) {
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<16x8xf32>, tensor<4x1xi32>) -> tensor<4x8xf32>
  %1 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<16x8xf32>, tensor<4x1xi32>, tensor<4x8xf32>) -> tensor<16x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<16x8xf32>
}
