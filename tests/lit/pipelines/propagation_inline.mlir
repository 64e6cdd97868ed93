// REFERENCE: no, the options inline-calls and reshard-ops-without-rule are our own
// RUN: shardy-opt %s -sdy-propagation-pipeline='inline-calls=true' | filecheck %s
// RUN: shardy-opt %s -sdy-propagation-pipeline='inline-calls=true enable-insert-explicit-collectives=true reshard-ops-without-rule=true' | filecheck %s --check-prefix=COLLECTIVES

// Bodies take the places of their calls before anything else runs.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @unknown(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[CUSTOM_CALL]] : tensor<8x8xf32>
// COLLECTIVES-LABEL: func.func @main(
// COLLECTIVES-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// COLLECTIVES-SAME:    -> tensor<8x8xf32> {
// COLLECTIVES-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"a"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
// COLLECTIVES-NEXT:   %[[CUSTOM_CALL:.*]] = stablehlo.custom_call @unknown(%[[ALL_GATHER]]) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// COLLECTIVES-NEXT:   return %[[CUSTOM_CALL]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func private @f(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.custom_call @unknown(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
