// RUN: shardy-opt %s -split-input-file -sdy-convert-global-to-local | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-convert-global-to-local='per-dim-all-gather=true' | filecheck %s --check-prefix=PERDIM
// RUN: shardy-opt %s -split-input-file -sdy-convert-global-to-local='combine-multi-dimension-reduce-scatter=true' | filecheck %s --check-prefix=COMBINE

// Each device's program has the shapes of its parts, and collectives of StableHLO.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @gather(
// CHECK-SAME:    %arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<4x4xf32>
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %[[TANH]] : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
// CHECK-NEXT:   %[[ALL_GATHER:.*]] = "stablehlo.all_gather"(%[[RESHAPE]]) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<1x4x4xf32>) -> tensor<4x4x4xf32>
// CHECK-NEXT:   %[[RESHAPE_1:.*]] = stablehlo.reshape %[[ALL_GATHER]] : (tensor<4x4x4xf32>) -> tensor<2x2x4x4xf32>
// CHECK-NEXT:   %[[TRANSPOSE:.*]] = stablehlo.transpose %[[RESHAPE_1]], dims = [0, 2, 1, 3] : (tensor<2x2x4x4xf32>) -> tensor<2x4x2x4xf32>
// CHECK-NEXT:   %[[RESHAPE_2:.*]] = stablehlo.reshape %[[TRANSPOSE]] : (tensor<2x4x2x4xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[RESHAPE_2]] : tensor<8x8xf32>
// PERDIM-LABEL: func.func @gather(
// PERDIM-SAME:    %arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
// PERDIM-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
// PERDIM-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<4x4xf32>
// PERDIM-NEXT:   %[[ALL_GATHER:.*]] = "stablehlo.all_gather"(%[[TANH]]) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x4xf32>) -> tensor<4x8xf32>
// PERDIM-NEXT:   %[[ALL_GATHER_1:.*]] = "stablehlo.all_gather"(%[[ALL_GATHER]]) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
// PERDIM-NEXT:   return %[[ALL_GATHER_1]] : tensor<8x8xf32>
// COMBINE-LABEL: func.func @gather(
// COMBINE-SAME:    %arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
// COMBINE-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
// COMBINE-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<4x4xf32>
// COMBINE-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %[[TANH]] : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
// COMBINE-NEXT:   %[[ALL_GATHER:.*]] = "stablehlo.all_gather"(%[[RESHAPE]]) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<1x4x4xf32>) -> tensor<4x4x4xf32>
// COMBINE-NEXT:   %[[RESHAPE_1:.*]] = stablehlo.reshape %[[ALL_GATHER]] : (tensor<4x4x4xf32>) -> tensor<2x2x4x4xf32>
// COMBINE-NEXT:   %[[TRANSPOSE:.*]] = stablehlo.transpose %[[RESHAPE_1]], dims = [0, 2, 1, 3] : (tensor<2x2x4x4xf32>) -> tensor<2x4x2x4xf32>
// COMBINE-NEXT:   %[[RESHAPE_2:.*]] = stablehlo.reshape %[[TRANSPOSE]] : (tensor<2x4x2x4xf32>) -> tensor<8x8xf32>
// COMBINE-NEXT:   return %[[RESHAPE_2]] : tensor<8x8xf32>
func.func @gather(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<8x8xf32>
  %1 = sdy.all_gather [{"a"}, {"b"}] %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
// CHECK-SAME:    %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
// CHECK-SAME:    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:   %[[ALL_REDUCE:.*]] = "stablehlo.all_reduce"(%[[DOT_GENERAL]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT:   ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %arg2, %arg3 : tensor<f32>
// CHECK-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// CHECK-NEXT:   }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:   return %[[ALL_REDUCE]] : tensor<4x4xf32>
// PERDIM-LABEL: func.func @product(
// PERDIM-SAME:    %arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
// PERDIM-SAME:    %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
// PERDIM-SAME:    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// PERDIM-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
// PERDIM-NEXT:   %[[ALL_REDUCE:.*]] = "stablehlo.all_reduce"(%[[DOT_GENERAL]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
// PERDIM-NEXT:   ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// PERDIM-NEXT:     %[[ADD:.*]] = stablehlo.add %arg2, %arg3 : tensor<f32>
// PERDIM-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// PERDIM-NEXT:   }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
// PERDIM-NEXT:   return %[[ALL_REDUCE]] : tensor<4x4xf32>
// COMBINE-LABEL: func.func @product(
// COMBINE-SAME:    %arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
// COMBINE-SAME:    %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
// COMBINE-SAME:    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// COMBINE-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
// COMBINE-NEXT:   %[[ALL_REDUCE:.*]] = "stablehlo.all_reduce"(%[[DOT_GENERAL]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
// COMBINE-NEXT:   ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
// COMBINE-NEXT:     %[[ADD:.*]] = stablehlo.add %arg2, %arg3 : tensor<f32>
// COMBINE-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// COMBINE-NEXT:   }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
// COMBINE-NEXT:   return %[[ALL_REDUCE]] : tensor<4x4xf32>
func.func @product(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}, %arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = sdy.all_reduce {"b"} %0 out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @scatter(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
// CHECK-SAME:    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
// CHECK-NEXT:   %[[ALL_REDUCE:.*]] = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
// CHECK-NEXT:   ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// CHECK-NEXT:   }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[PARTITION_ID:.*]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT:   %[[CONVERT:.*]] = stablehlo.convert %[[PARTITION_ID]] : (tensor<ui32>) -> tensor<i64>
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<[0, 0, 4, 4]> : tensor<4xi64>
// CHECK-NEXT:   %[[DYNAMIC_SLICE:.*]] = stablehlo.dynamic_slice %[[CONSTANT]], %[[CONVERT]], sizes = [1] : (tensor<4xi64>, tensor<i64>) -> tensor<1xi64>
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %[[DYNAMIC_SLICE]] : (tensor<1xi64>) -> tensor<i64>
// CHECK-NEXT:   %[[PARTITION_ID_1:.*]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT:   %[[CONVERT_1:.*]] = stablehlo.convert %[[PARTITION_ID_1]] : (tensor<ui32>) -> tensor<i64>
// CHECK-NEXT:   %[[CONSTANT_1:.*]] = stablehlo.constant dense<[0, 4, 0, 4]> : tensor<4xi64>
// CHECK-NEXT:   %[[DYNAMIC_SLICE_1:.*]] = stablehlo.dynamic_slice %[[CONSTANT_1]], %[[CONVERT_1]], sizes = [1] : (tensor<4xi64>, tensor<i64>) -> tensor<1xi64>
// CHECK-NEXT:   %[[RESHAPE_1:.*]] = stablehlo.reshape %[[DYNAMIC_SLICE_1]] : (tensor<1xi64>) -> tensor<i64>
// CHECK-NEXT:   %[[DYNAMIC_SLICE_2:.*]] = stablehlo.dynamic_slice %[[ALL_REDUCE]], %[[RESHAPE]], %[[RESHAPE_1]], sizes = [4, 4] : (tensor<8x8xf32>, tensor<i64>, tensor<i64>) -> tensor<4x4xf32>
// CHECK-NEXT:   return %[[DYNAMIC_SLICE_2]] : tensor<4x4xf32>
// PERDIM-LABEL: func.func @scatter(
// PERDIM-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
// PERDIM-SAME:    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
// PERDIM-NEXT:   %[[ALL_REDUCE:.*]] = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
// PERDIM-NEXT:   ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// PERDIM-NEXT:     %[[ADD:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// PERDIM-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// PERDIM-NEXT:   }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// PERDIM-NEXT:   %[[PARTITION_ID:.*]] = stablehlo.partition_id : tensor<ui32>
// PERDIM-NEXT:   %[[CONVERT:.*]] = stablehlo.convert %[[PARTITION_ID]] : (tensor<ui32>) -> tensor<i64>
// PERDIM-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<[0, 0, 4, 4]> : tensor<4xi64>
// PERDIM-NEXT:   %[[DYNAMIC_SLICE:.*]] = stablehlo.dynamic_slice %[[CONSTANT]], %[[CONVERT]], sizes = [1] : (tensor<4xi64>, tensor<i64>) -> tensor<1xi64>
// PERDIM-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %[[DYNAMIC_SLICE]] : (tensor<1xi64>) -> tensor<i64>
// PERDIM-NEXT:   %[[PARTITION_ID_1:.*]] = stablehlo.partition_id : tensor<ui32>
// PERDIM-NEXT:   %[[CONVERT_1:.*]] = stablehlo.convert %[[PARTITION_ID_1]] : (tensor<ui32>) -> tensor<i64>
// PERDIM-NEXT:   %[[CONSTANT_1:.*]] = stablehlo.constant dense<[0, 4, 0, 4]> : tensor<4xi64>
// PERDIM-NEXT:   %[[DYNAMIC_SLICE_1:.*]] = stablehlo.dynamic_slice %[[CONSTANT_1]], %[[CONVERT_1]], sizes = [1] : (tensor<4xi64>, tensor<i64>) -> tensor<1xi64>
// PERDIM-NEXT:   %[[RESHAPE_1:.*]] = stablehlo.reshape %[[DYNAMIC_SLICE_1]] : (tensor<1xi64>) -> tensor<i64>
// PERDIM-NEXT:   %[[DYNAMIC_SLICE_2:.*]] = stablehlo.dynamic_slice %[[ALL_REDUCE]], %[[RESHAPE]], %[[RESHAPE_1]], sizes = [4, 4] : (tensor<8x8xf32>, tensor<i64>, tensor<i64>) -> tensor<4x4xf32>
// PERDIM-NEXT:   return %[[DYNAMIC_SLICE_2]] : tensor<4x4xf32>
// COMBINE-LABEL: func.func @scatter(
// COMBINE-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
// COMBINE-SAME:    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
// COMBINE-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 : (tensor<8x8xf32>) -> tensor<2x4x2x4xf32>
// COMBINE-NEXT:   %[[TRANSPOSE:.*]] = stablehlo.transpose %[[RESHAPE]], dims = [0, 2, 1, 3] : (tensor<2x4x2x4xf32>) -> tensor<2x2x4x4xf32>
// COMBINE-NEXT:   %[[RESHAPE_1:.*]] = stablehlo.reshape %[[TRANSPOSE]] : (tensor<2x2x4x4xf32>) -> tensor<4x4x4xf32>
// COMBINE-NEXT:   %[[REDUCE_SCATTER:.*]] = "stablehlo.reduce_scatter"(%[[RESHAPE_1]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1, 2, 3]]> : tensor<1x4xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
// COMBINE-NEXT:   ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// COMBINE-NEXT:     %[[ADD:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// COMBINE-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// COMBINE-NEXT:   }) : (tensor<4x4x4xf32>) -> tensor<1x4x4xf32>
// COMBINE-NEXT:   %[[RESHAPE_2:.*]] = stablehlo.reshape %[[REDUCE_SCATTER]] : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
// COMBINE-NEXT:   return %[[RESHAPE_2]] : tensor<4x4xf32>
func.func @scatter(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = sdy.reduce_scatter [{"a"}, {"b"}] %arg0 out_sharding=<@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
