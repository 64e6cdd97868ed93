// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -combine-partial-sums-late | filecheck %s

// The sum of two partial products is reduced once.

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @main(
// CHECK:         %[[FIRST:.*]] = stablehlo.dot_general %arg0, %arg1
// CHECK-NEXT:    %[[SECOND:.*]] = stablehlo.dot_general %arg0, %arg2
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.add %[[FIRST]], %[[SECOND]]
// CHECK-NEXT:    %[[REDUCED:.*]] = sdy.all_reduce {"x"} %[[SUM]]
// CHECK-NEXT:    return %[[REDUCED]]
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %2 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = sdy.all_reduce {"x"} %2 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %4 = stablehlo.add %1, %3 : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
