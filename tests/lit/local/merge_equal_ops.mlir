// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -merge-equal-ops | filecheck %s

// Equal collectives of one value are one.

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @main(
// CHECK:         %[[GATHER:.*]] = sdy.all_gather [{"x"}] %arg0
// CHECK-NEXT:    %[[SUM:.*]] = stablehlo.add %[[GATHER]], %[[GATHER]]
// CHECK-NEXT:    return %[[SUM]]
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
  %1 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
