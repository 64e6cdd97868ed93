// RUN: shardy-opt %s -split-input-file -sdy-basic-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-aggressive-propagate='conservative-propagation=true' | filecheck %s

// A dimension that is one factor may be sharded unevenly, also by conservative propagation.

sdy.mesh @mesh = <["a"=4]>

// CHECK-LABEL: func.func @uneven_dimension(
// CHECK-SAME:    %arg0: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>})
// CHECK-SAME:    -> (tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}) {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}]>]>}
// CHECK-NEXT:   return %[[TANH]] : tensor<10xf32>
func.func @uneven_dimension(%arg0: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}]>}) -> tensor<10xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<10xf32>
  return %0 : tensor<10xf32>
}

// -----

sdy.mesh @mesh = <["a"=4]>

// CHECK-LABEL: func.func @slice_of_an_uneven_dimension(
// CHECK-SAME:    %arg0: tensor<10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK-SAME:    -> (tensor<10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) {
// CHECK-NEXT:   %[[SLICE:.*]] = stablehlo.slice %arg0 [0:10, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   return %[[SLICE]] : tensor<10x8xf32>
func.func @slice_of_an_uneven_dimension(%arg0: tensor<10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> tensor<10x8xf32> {
  %0 = stablehlo.slice %arg0 [0:10, 0:8] : (tensor<10x8xf32>) -> tensor<10x8xf32>
  return %0 : tensor<10x8xf32>
}
