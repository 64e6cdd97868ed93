// REFERENCE: no, the option reshard-ops-without-rule is our own
// RUN: shardy-opt %s -sdy-insert-explicit-reshards='enable-full-version=true reshard-ops-without-rule=true' | filecheck %s

// What an op without a rule computes from a part is unknown: its operands are gathered, and its results sharded again.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @unknown(%[[RESHARD]]) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
// CHECK-NEXT:   %[[RESHARD_1:.*]] = sdy.reshard %[[CUSTOM_CALL]] <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[RESHARD_1]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = stablehlo.custom_call @unknown(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
