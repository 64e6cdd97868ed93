// RUN: shardy-opt %s -sdy-remove-sharding-groups | filecheck %s

// Groups go after propagation.

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  sdy.sharding_group %arg0 group_id=0 : tensor<8x8xf32>
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  sdy.sharding_group %0 group_id=0 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
