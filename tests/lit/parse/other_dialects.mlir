// RUN: shardy-opt %s -allow-unregistered-dialect -sdy-basic-propagate | filecheck %s

// Ops of unknown dialects stay as they are; nothing propagates through them.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[OP:.*]] = "mine.op"(%arg0) {text = "x"}
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[OP]] : tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> tensor<8x8xf32> {
  %0 = "mine.op"(%arg0) {text = "x"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
