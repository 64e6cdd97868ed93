// RUN: shardy local %s --quiet | filecheck %s
// RUN: shardy local %s --quiet --device 1 | filecheck %s --check-prefix=DEVICE

// The whole way to the program of a device: propagation, collectives, local shapes. With a number, it is the program
// of that device alone.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:   %[[REDUCE:.*]] = stablehlo.reduce(%arg0 init: %[[CONSTANT]]) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NEXT:   %[[ALL_REDUCE:.*]] = "stablehlo.all_reduce"(%[[REDUCE]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
// CHECK-NEXT:   ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// CHECK-NEXT:     %[[ADD:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// CHECK-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// CHECK-NEXT:   }) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:   return %[[ALL_REDUCE]] : tensor<8xf32>
// DEVICE-LABEL: func.func @main(
// DEVICE-SAME:    %arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// DEVICE-SAME:    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
// DEVICE-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// DEVICE-NEXT:   %[[REDUCE:.*]] = stablehlo.reduce(%arg0 init: %[[CONSTANT]]) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
// DEVICE-NEXT:   %[[ALL_REDUCE:.*]] = "stablehlo.all_reduce"(%[[REDUCE]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
// DEVICE-NEXT:   ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
// DEVICE-NEXT:     %[[ADD:.*]] = stablehlo.add %arg1, %arg2 : tensor<f32>
// DEVICE-NEXT:     stablehlo.return %[[ADD]] : tensor<f32>
// DEVICE-NEXT:   }) : (tensor<8xf32>) -> tensor<8xf32>
// DEVICE-NEXT:   return %[[ALL_REDUCE]] : tensor<8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
