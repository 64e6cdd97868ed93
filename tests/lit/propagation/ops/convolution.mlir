// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-op-priority-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-user-priority-propagate | filecheck %s

// A convolution propagates along batch, features and, as far as windows allow, space.

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>

// CHECK-LABEL: func.func @convolution(
// CHECK-SAME:    %arg0: tensor<8x10x10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}, {"c", ?}]>},
// CHECK-SAME:    %arg1: tensor<3x3x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"c", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<8x8x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[CONVOLUTION:.*]] = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}, {?}, {"b", ?}]>]>}
// CHECK-NEXT:   return %[[CONVOLUTION]] : tensor<8x8x8x16xf32>
func.func @convolution(%arg0: tensor<8x10x10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}, {"c", ?}]>}, %arg1: tensor<3x3x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}, {"b", ?}]>}) -> tensor<8x8x8x16xf32> {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x10x10x4xf32>, tensor<3x3x4x16xf32>) -> tensor<8x8x8x16xf32>
  return %0 : tensor<8x8x8x16xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @spatial(
// CHECK-SAME:    %arg0: tensor<8x10x10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}, {"b", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<3x3x4x16xf32>)
// CHECK-SAME:    -> (tensor<8x8x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}, {"b", ?}, {?}]>}) {
// CHECK-NEXT:   %[[CONVOLUTION:.*]] = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"a", ?}, {"b", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[CONVOLUTION]] : tensor<8x8x8x16xf32>
func.func @spatial(%arg0: tensor<8x10x10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"a", ?}, {"b", ?}, {?}]>}, %arg1: tensor<3x3x4x16xf32>) -> tensor<8x8x8x16xf32> {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x10x10x4xf32>, tensor<3x3x4x16xf32>) -> tensor<8x8x8x16xf32>
  return %0 : tensor<8x8x8x16xf32>
}
