// RUN: shardy-opt %s -sdy-constant-or-scalar-splitter | filecheck %s

// Each use of a constant gets a copy of its own, so that one user's sharding does not hold another one's back. With it
// goes what is computed from constants alone; broadcasts of scalars are copied, too, scalars themselves are not.

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>,
// CHECK-SAME:    %arg1: tensor<f32>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[CONSTANT:.*]] = sdy.constant dense<1.000000e+00> : tensor<8x8xf32>
// CHECK-NEXT:   %[[CONSTANT_1:.*]] = sdy.constant dense<1.000000e+00> : tensor<8x8xf32>
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[CONSTANT]], %[[CONSTANT]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[ADD_1:.*]] = stablehlo.add %[[CONSTANT_1]], %[[CONSTANT_1]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[MULTIPLY:.*]] = stablehlo.multiply %arg0, %[[ADD]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[SUBTRACT:.*]] = stablehlo.subtract %arg0, %[[ADD_1]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[BROADCAST_IN_DIM:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[BROADCAST_IN_DIM_1:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[MULTIPLY_1:.*]] = stablehlo.multiply %arg0, %[[BROADCAST_IN_DIM]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[SUBTRACT_1:.*]] = stablehlo.subtract %arg0, %[[BROADCAST_IN_DIM_1]] : tensor<8x8xf32>
// CHECK-NEXT:   return %[[MULTIPLY]], %[[SUBTRACT]], %[[MULTIPLY_1]], %[[SUBTRACT_1]] : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<f32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %cst = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %0 = stablehlo.add %cst, %cst : tensor<8x8xf32>
  %1 = stablehlo.multiply %arg0, %0 : tensor<8x8xf32>
  %2 = stablehlo.subtract %arg0, %0 : tensor<8x8xf32>
  %3 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %4 = stablehlo.multiply %arg0, %3 : tensor<8x8xf32>
  %5 = stablehlo.subtract %arg0, %3 : tensor<8x8xf32>
  return %1, %2, %4, %5 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
