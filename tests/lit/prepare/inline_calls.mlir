// REFERENCE: no, the pass inline-calls is our own
// RUN: shardy-opt %s -inline-calls | filecheck %s

// Bodies of functions take the places of their calls; shardings that a function asks for become constraints. A call of
// a function that must not be inlined stays.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[SHARDING_CONSTRAINT]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[CALL:.*]] = call @g(%[[TANH]]) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]], %[[CALL]] : tensor<8x8xf32>, tensor<8x8xf32>
// CHECK-LABEL: func.func private @g(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> attributes {no_inline} {
// CHECK-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   return %[[NEGATE]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @g(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}

func.func private @f(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func private @g(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {no_inline} {
  %0 = stablehlo.negate %arg0 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
