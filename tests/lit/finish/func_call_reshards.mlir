// RUN: shardy-opt %s -sdy-insert-func-call-reshards | filecheck %s

// The results of a call get the shardings of the function's results; a reshard brings those that differ back to what
// the call had.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[CALL:.*]] = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   %[[CALL_1:.*]] = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %[[CALL_1]] <@mesh, [{}, {"a"}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[NEGATE:.*]] = stablehlo.negate %[[RESHARD]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// CHECK-NEXT:   return %[[CALL]], %[[NEGATE]] : tensor<8x8xf32>, tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} : tensor<8x8xf32>
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func private @f(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   return %arg0 : tensor<8x8xf32>
func.func private @f(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  return %arg0 : tensor<8x8xf32>
}
