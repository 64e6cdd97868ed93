// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -inline-explicit-calls | filecheck %s

// A value that a function takes under another sharding is resharded before the body.

sdy.mesh @mesh = <["x"=4]>

// CHECK-LABEL: func.func @main(
// CHECK:         %[[GATHER:.*]] = sdy.all_gather [{"x"}] %arg0
// CHECK-NEXT:    %[[SINE:.*]] = stablehlo.sine %[[GATHER]]
// CHECK-NEXT:    return %[[SINE]]
// CHECK-NOT:   func.func private
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = stablehlo.sine %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
