// REFERENCE: no with upstream=head, jaxlib 0.10.2 is older than the head of upstream
// RUN: shardy-opt %s -sdy-insert-explicit-reshards='upstream=head' | filecheck %s
// RUN: shardy-opt %s -sdy-insert-explicit-reshards | filecheck %s --check-prefix=JAXLIB

// At upstream's head, operands go to the device of an op by way of all devices, and results come back.

sdy.mesh @mesh = <["x"=2]>
sdy.mesh @device_1 = <[], device_ids=[1]>

// CHECK-LABEL: func @main
// CHECK-NEXT: %[[WHOLE:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]>
// CHECK-NEXT: %[[THERE:.*]] = sdy.reshard %[[WHOLE]] <@device_1, []>
// CHECK-NEXT: %[[CALL:.*]]:2 = stablehlo.custom_call @f(%[[THERE]]) {sdy.sharding = #sdy.sharding_per_value<[<@device_1, []>, <@device_1, []>]>}
// CHECK-NEXT: %[[FIRST:.*]] = sdy.reshard %[[CALL]]#0 <@mesh, [{}, {}]>
// CHECK-NEXT: %[[SECOND:.*]] = sdy.reshard %[[CALL]]#1 <@mesh, [{}, {}]>
// CHECK-NEXT: %[[SHARDED:.*]] = sdy.reshard %[[SECOND]] <@mesh, [{"x"}, {}]>
// CHECK-NEXT: return %[[FIRST]], %[[SHARDED]]
// JAXLIB-LABEL: func @main
// JAXLIB-NEXT: stablehlo.custom_call @f(%arg0)
// JAXLIB-NEXT: return
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x4xf32>, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0:2 = stablehlo.custom_call @f(%arg0) {
    sdy.sharding = #sdy.sharding_per_value<[<@device_1, []>, <@mesh, [{"x"}, {}]>]>
  } : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<8x4xf32>
}
