// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -plan-communication | filecheck %s

// A narrow type is gathered before it is converted to a wider one.

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @main(
// CHECK:         %[[GATHER:.*]] = sdy.all_gather [{"x"}] %arg0 out_sharding=<@mesh, [{}]> : tensor<4096xi8>
// CHECK-NEXT:    %[[WIDE:.*]] = stablehlo.convert %[[GATHER]]
// CHECK-NEXT:    return %[[WIDE]]
func.func @main(%a: tensor<4096xi8> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = stablehlo.convert %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<4096xi8>) -> tensor<4096xf32>
  %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{}]> : tensor<4096xf32>
  return %1 : tensor<4096xf32>
}
