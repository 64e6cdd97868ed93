// RUN: shardy-opt %s -mpmd-simplify-ops | filecheck %s
// REFERENCE: no, jaxlib simplifies ops in its whole pipelines only

// Two transposes give back the argument, and a sum with zeros is the other operand.

// CHECK-LABEL: func.func @main(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    return %arg0
func.func @main(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %3 = stablehlo.add %1, %2 : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
