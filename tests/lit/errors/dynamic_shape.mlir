// RUN: not shardy-opt %s -sdy-basic-propagate 2>&1 | filecheck %s

// A shape that is known at run time only cannot be sharded.

sdy.mesh @mesh = <["a"=2]>

func.func @main(%arg0: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: dynamic_shape.mlir:[[@LINE+1]]:8: error: 'stablehlo.tanh' op Shardy propagation only supports ranked tensors with a static shape. type: tensor<?x8xf32>
  %0 = stablehlo.tanh %arg0 : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
