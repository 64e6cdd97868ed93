// RUN: shardy rules %s | filecheck %s
// RUN: shardy rules %s --json | filecheck %s --check-prefix=JSON

// The rule of each op.

// CHECK: rules.mlir:{{[0-9]+}}:8  stablehlo.dot_general  <([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>
// CHECK-NEXT: rules.mlir:{{[0-9]+}}:8  stablehlo.transpose  <([j, i])->([i, j]) {i=4, j=8}>
// JSON: "rule": "<([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>"
func.func @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16x4xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
