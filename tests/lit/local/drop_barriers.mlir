// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -drop-barriers | filecheck %s

// A barrier stops propagation; behind it, its result is its operand.

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.negate %arg0
// CHECK-NEXT:    return %[[SUM]]
func.func @main(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = sdy.propagation_barrier %a allowed_direction=BACKWARD : tensor<16xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<16xf32>
  return %1 : tensor<16xf32>
}

// The sharding of a barrier says nothing about its result, which is as the operand is.

// CHECK-LABEL: func.func @other(
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.negate %arg0
// CHECK-NEXT:    return %[[SUM]]
func.func @other(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = sdy.propagation_barrier %a allowed_direction=NONE {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<16x8xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}
