// RUN: shardy-opt %s -sdy-remove-propagation-debug-info | filecheck %s

// Origins and propagation edges go from ops, arguments and results.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>, sdy.sharding_origins = {a = "self"}}) -> (tensor<8x8xf32> {sdy.sharding_origins = {a = "input: 0"}}) {
  %0 = stablehlo.tanh %arg0 {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [result-0]}]}]>, sdy.sharding_origins = [{a = "input: 0"}]} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
