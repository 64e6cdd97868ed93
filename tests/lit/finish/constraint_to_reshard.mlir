// RUN: shardy-opt %s -sdy-sharding-constraint-to-reshard | filecheck %s

// A constraint becomes a reshard to the same sharding.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"a"}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[RESHARD]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {?}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
