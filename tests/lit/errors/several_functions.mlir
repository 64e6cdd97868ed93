// RUN: not shardy-opt %s -sdy-basic-propagate 2>&1 | filecheck %s

// Propagation has to know the main function.

// CHECK: several_functions.mlir:[[@LINE+1]]:1: error: {{.*}}main{{.*}}@first, @second
func.func @first(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

func.func @second(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
