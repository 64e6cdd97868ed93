// RUN: shardy-opt %s -sdy-resolve-single-device-sharding | filecheck %s
// REFERENCE: no, jaxlib registers no pass sdy-resolve-single-device-sharding

// An op of one device runs under a condition, and an all-reduce gives its result to all.

sdy.mesh @mesh = <["a"=2]>
sdy.mesh @one_device = <[], device_ids=[1]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[PARTITION_ID:.*]] = stablehlo.partition_id : tensor<ui32>
// CHECK-NEXT:   %[[CONVERT:.*]] = stablehlo.convert %[[PARTITION_ID]] : (tensor<ui32>) -> tensor<i64>
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<1> : tensor<i64>
// CHECK-NEXT:   %[[COMPARE:.*]] = stablehlo.compare EQ, %[[CONVERT]], %[[CONSTANT]] : (tensor<i64>, tensor<i64>) -> tensor<i1>
// CHECK-NEXT:   %[[IF:.*]] = "stablehlo.if"(%[[COMPARE]]) ({
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %[[RESHARD]] : tensor<8x8xf32>
// CHECK-NEXT:     stablehlo.return %[[TANH]] : tensor<8x8xf32>
// CHECK-NEXT:   }, {
// CHECK-NEXT:     %[[CONSTANT_1:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<8x8xf32>
// CHECK-NEXT:     stablehlo.return %[[CONSTANT_1]] : tensor<8x8xf32>
// CHECK-NEXT:   }) : (tensor<i1>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[ALL_REDUCE:.*]] = sdy.all_reduce {"a"} %[[IF]] out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[RESHARD_1:.*]] = sdy.reshard %[[ALL_REDUCE]] <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[RESHARD_1]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = sdy.reshard %arg0 <@one_device, []> : tensor<8x8xf32>
  %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@one_device, []>]>} : tensor<8x8xf32>
  %2 = sdy.reshard %1 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
