// RUN: shardy-opt %s -sdy-verify-unreduced-axes | filecheck %s
// REFERENCE: no, jaxlib registers no pass sdy-verify-unreduced-axes

// An op may hand on the unreduced axes of its operands, and a reduction may leave some of its own.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>},
// CHECK-SAME:    %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"a"}>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %[[DOT_GENERAL]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"a"}>]>}
// CHECK-NEXT:   %[[ALL_REDUCE:.*]] = sdy.all_reduce {"a"} %[[ADD]] out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[ALL_REDUCE]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}, %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"a"}>]>} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.add %0, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"a"}>]>} : tensor<8x8xf32>
  %2 = sdy.all_reduce {"a"} %1 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
