// RUN: shardy-opt %s -sdy-inline-meshes | filecheck %s
// RUN: shardy-opt %s -sdy-inline-meshes -sdy-lift-inlined-meshes | filecheck %s --check-prefix=BACK

// The names of meshes are replaced by the meshes; lifting is the way back.

sdy.mesh @mesh = <["a"=2, "b"=4]>

// CHECK-LABEL: func.func @inline(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2, "b"=4]>, [{"a"}, {"b":(1)2, ?}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["a"=2, "b"=4]>, [{"a"}, {?}]>]>}
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
// BACK: sdy.mesh @mesh = <["a"=2, "b"=4]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}, {name = "b", size = 4 : i64}]}}
// BACK-LABEL: func.func @inline(
// BACK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b":(1)2, ?}]>})
// BACK-SAME:    -> tensor<8x8xf32> {
// BACK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>}
// BACK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @inline(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b":(1)2, ?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {?}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
