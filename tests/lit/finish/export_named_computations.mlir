// RUN: shardy-opt %s -sdy-export-named-computations | filecheck %s

// Named computations become calls of private functions again, which are named after them; their shardings go to the
// arguments of the function and to the results of the call.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[CALL:.*]] = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// CHECK-NEXT:   %[[CALL_1:.*]] = call @f_0(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[CALL]], %[[CALL_1]] : tensor<8x8xf32>, tensor<8x8xf32>
// CHECK-LABEL: func.func private @f(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> attributes {sdy.original_func_name = "f"} {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> attributes {sdy.original_func_name = "f"} {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.named_computation<"f">(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{}, {"a"}]>] (%arg1: tensor<8x8xf32>) {
    %2 = stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<8x8xf32>
    sdy.return %2 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.named_computation<"f">(%arg0) (%arg1: tensor<8x8xf32>) {
    %2 = stablehlo.tanh %arg1 : tensor<8x8xf32>
    sdy.return %2 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
