// RUN: shardy-opt %s -sdy-pad-for-divisibility | filecheck %s

// Values that do not divide are padded to a multiple of the number of their parts.

sdy.mesh @mesh = <["a"=4]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
// CHECK-SAME:    -> tensor<6x8xf32> {
// CHECK-NEXT:   %[[SLICE:.*]] = stablehlo.slice %arg0 [0:6, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
// CHECK-NEXT:   %[[CONSTANT:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT:   %[[PAD:.*]] = stablehlo.pad %[[SLICE]], %[[CONSTANT]], low = [0, 0], high = [2, 0], interior = [0, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
// CHECK-NEXT:   %[[ALL_SLICE:.*]] = sdy.all_slice [{"a"}, {}] %[[PAD]] out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %[[ALL_SLICE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"a"}, {}] %[[TANH]] out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[SLICE_1:.*]] = stablehlo.slice %[[ALL_GATHER]] [0:6, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}
// CHECK-NEXT:   return %[[SLICE_1]] : tensor<6x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> tensor<6x8xf32> {
  %0 = stablehlo.slice %arg0 [0:6, 0:8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<8x8xf32>) -> tensor<6x8xf32>
  %1 = sdy.all_slice [{"a"}, {}] %0 out_sharding=<@mesh, [{"a"}, {}]> : tensor<6x8xf32>
  %2 = stablehlo.tanh %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : tensor<6x8xf32>
  %3 = sdy.all_gather [{"a"}, {}] %2 out_sharding=<@mesh, [{}, {}]> : tensor<6x8xf32>
  return %3 : tensor<6x8xf32>
}
