// RUN: shardy-opt %s -symbol-dce | filecheck %s

// Private functions that no public one needs, if only indirectly, are erased; meshes that nothing names stay, as
// symbols that are public.

sdy.mesh @mesh = <["a"=2]>

// CHECK: sdy.mesh @mesh = <["a"=2]>
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8xf32>)
// CHECK-SAME:    -> tensor<8xf32> {
// CHECK-NEXT:   %[[CALL:.*]] = call @used(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:   return %[[CALL]] : tensor<8xf32>
// CHECK-LABEL: func.func private @used(
// CHECK-SAME:    %arg0: tensor<8xf32>)
// CHECK-SAME:    -> tensor<8xf32> {
// CHECK-NEXT:   return %arg0 : tensor<8xf32>
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @used(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @used(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

func.func private @unused(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @used_by_unused(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @used_by_unused(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
