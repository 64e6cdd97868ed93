// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -count-sent-bytes | filecheck %s

// Where nobody asks for the bytes that are sent, the pass does nothing.

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @main(
// CHECK-NEXT:    %[[GATHER:.*]] = sdy.all_gather [{"x"}] %arg0 out_sharding=<@mesh, [{}]> : tensor<16xf32>
// CHECK-NEXT:    return %[[GATHER]]
func.func @main(%a: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<16xf32>
  return %0 : tensor<16xf32>
}
