// RUN: shardy-opt %s -split-input-file -sdy-lift-inlined-meshes | filecheck %s

// Meshes that are written in shardings become symbols, equal symbols become one, and one device has a mesh of its own.

// CHECK: sdy.mesh @mesh = <["a"=2]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}]}}
// CHECK-LABEL: func.func @inlined(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @inlined(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["a"=2]>, [{"a"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

sdy.mesh @first = <["a"=2]>
sdy.mesh @second = <["a"=2]>

// CHECK: sdy.mesh @first = <["a"=2]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}]}}
// CHECK-LABEL: func.func @equal_symbols(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@first, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@first, [{"a"}, {}]>]>}
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @equal_symbols(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@second, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@first, [{"a"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// CHECK: sdy.mesh @maximal_mesh_5 = <[], device_ids=[5]> {stablehlo.mesh = {axes = [], device_ids = dense<5> : tensor<1xi64>}}
// CHECK-LABEL: func.func @one_device(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@maximal_mesh_5, []>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   return %arg0 : tensor<8x8xf32>
func.func @one_device(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<[], device_ids=[5]>, []>}) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}
