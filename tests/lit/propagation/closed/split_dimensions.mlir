// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s

// Where a dimension is split into several factors, all of them are closed if it is; if it is open, it takes the axes of
// the minor factor only behind a major factor that is sharded to its full size.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @closed_dimension_of_two_factors(
// CHECK-SAME:    %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
// CHECK-SAME:    %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[RESHAPE]], %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   return %[[ADD]] : tensor<2x4xf32>
func.func @closed_dimension_of_two_factors(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @open_dimension_of_two_factors(
// CHECK-SAME:    %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}]>},
// CHECK-SAME:    %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[RESHAPE]], %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   return %[[ADD]] : tensor<2x4xf32>
func.func @open_dimension_of_two_factors(%arg0: tensor<8xf32>, %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// A closed dimension of two factors stays closed when another dimension of the tensor changes.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @other_dimension_changes(
// CHECK-SAME:    %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a", ?}]>},
// CHECK-SAME:    %arg1: tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"a", ?}]>})
// CHECK-SAME:    -> (tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"a", ?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}, {"a", ?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[RESHAPE]], %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}, {"a", ?}]>]>}
// CHECK-NEXT:   return %[[ADD]] : tensor<2x4x4xf32>
func.func @other_dimension_changes(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}, %arg1: tensor<2x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"a", ?}]>}) -> tensor<2x4x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<2x4x4xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<2x4x4xf32>
  return %1 : tensor<2x4x4xf32>
}

// -----

// The major factor is not full: the minor one cannot follow it in the merged dimension.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @major_factor_is_not_full(
// CHECK-SAME:    %arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>},
// CHECK-SAME:    %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[RESHAPE]], %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   return %[[ADD]] : tensor<4x4xf32>
func.func @major_factor_is_not_full(%arg0: tensor<16xf32>, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) -> tensor<4x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<16xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
