// RUN: shardy-opt %s | filecheck %s

// The ops of the sdy dialect, text in, text out.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @ops(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   sdy.sharding_group %arg0 group_id=21 : tensor<8x8xf32>
// CHECK-NEXT:   %[[SHARDING_CONSTRAINT:.*]] = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {?}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %[[SHARDING_CONSTRAINT]] <@mesh, [{}, {"b"}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[PROPAGATION_BARRIER:.*]] = sdy.propagation_barrier %[[RESHARD]] allowed_direction=BACKWARD : tensor<8x8xf32>
// CHECK-NEXT:   %[[CONSTANT:.*]] = sdy.constant dense<1.000000e+00> : tensor<8x8xf32>
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[PROPAGATION_BARRIER]], %[[CONSTANT]] : tensor<8x8xf32>
// CHECK-NEXT:   %[[NAMED_COMPUTATION:.*]] = sdy.named_computation<"f">(%[[ADD]]) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] (%arg1: tensor<8x8xf32>) {
// CHECK-NEXT:     sdy.return %arg1 : tensor<8x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%[[NAMED_COMPUTATION]]) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
// CHECK-NEXT:     sdy.return %arg1 : tensor<4x8xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[MANUAL_COMPUTATION]] : tensor<8x8xf32>
func.func @ops(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  sdy.sharding_group %arg0 group_id=21 : tensor<8x8xf32>
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {?}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {"b"}]> : tensor<8x8xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=BACKWARD : tensor<8x8xf32>
  %3 = sdy.constant dense<1.0> : tensor<8x8xf32>
  %4 = stablehlo.add %2, %3 : tensor<8x8xf32>
  %5 = sdy.named_computation<"f">(%4) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] (%arg1: tensor<8x8xf32>) {
    sdy.return %arg1 : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = sdy.manual_computation(%5) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
    sdy.return %arg1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}
