// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s

// Axes that do not divide the factors of a dimension stay behind as overflow: the dimension keeps them, gives on what
// divides, and takes nothing more.

// 3 does not divide 2: no factor of the split dimension can have "c".
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=3]>

// CHECK-LABEL: func.func @nothing_divides(
// CHECK-SAME:    %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", ?}]>})
// CHECK-SAME:    -> tensor<2x4xf32> {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
// CHECK-NEXT:   return %[[RESHAPE]] : tensor<2x4xf32>
func.func @nothing_divides(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", ?}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// "a" fills the major factor; "c" does not divide the minor one, which as the last one takes it all the same.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=3]>

// CHECK-LABEL: func.func @last_factor_takes_the_rest(
// CHECK-SAME:    %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "c", ?}]>})
// CHECK-SAME:    -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"c", ?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"c", ?}]>]>}
// CHECK-NEXT:   return %[[RESHAPE]] : tensor<2x4xf32>
func.func @last_factor_takes_the_rest(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "c", ?}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Behind the overflow "c" the dimension takes neither the "a" nor the "b" of the split dimensions.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=3]>

// CHECK-LABEL: func.func @overflow_blocks(
// CHECK-SAME:    %arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", ?}]>},
// CHECK-SAME:    %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>})
// CHECK-SAME:    -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[RESHAPE]], %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {"b", ?}]>]>}
// CHECK-NEXT:   return %[[ADD]] : tensor<2x4xf32>
func.func @overflow_blocks(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", ?}]>}, %arg1: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {"b", ?}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// The overflow "c" of the first dimension is in use: the second one cannot take it from the other tensor.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=3]>

// CHECK-LABEL: func.func @overflow_is_not_available(
// CHECK-SAME:    %arg0: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<2x4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"c", ?}]>})
// CHECK-SAME:    -> (tensor<2x4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"c", ?}]>}) {
// CHECK-NEXT:   %[[RESHAPE:.*]] = stablehlo.reshape %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}, {"c", ?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[RESHAPE]], %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}, {"c", ?}]>]>}
// CHECK-NEXT:   return %[[ADD]] : tensor<2x4x3xf32>
func.func @overflow_is_not_available(%arg0: tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c", ?}, {?}]>}, %arg1: tensor<2x4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"c", ?}]>}) -> tensor<2x4x3xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<2x4x3xf32>
  return %1 : tensor<2x4x3xf32>
}
