// RUN: not shardy-opt %s -sdy-flatten-call-graph 2>&1 | filecheck %s

// Functions that call each other in a circle cannot be copied per call.

func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: recursion.mlir:[[@LINE+1]]:8: error: 'func.call' op {{.*}}@f -> @g -> @f
  %0 = call @g(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func private @g(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
