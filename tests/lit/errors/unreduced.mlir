// RUN: not shardy-opt %s -sdy-verify-unreduced-axes 2>&1 | filecheck %s

// An op that is not a reduction cannot drop an unreduced axis.

sdy.mesh @mesh = <["a"=2]>

func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"a"}>}) -> tensor<8x8xf32> {
  // CHECK: unreduced.mlir:[[@LINE+1]]:8: error: 'stablehlo.tanh' op {{.*}}unreduced axis "a"
  %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
